#!/usr/bin/env node
// An estimator for Weir in JavaScript, without a dependency: that of aimd.py.
//
//     weir estimator check 'node examples/estimators/aimd.js'
//     weir compare --controllers 'exec:node examples/estimators/aimd.js,gcc' --scenario quick
'use strict'

const ABOUT = {
  version: 1,
  name: 'aimd.js',
  events: ['feedback', 'limits'],
  answers: ['feedback', 'limits'],
  feedback: { interval_ms: 100 },
}

let rate = 0
let floor = 0
let ceiling = 0
let least = Infinity

function onFeedback(packets) {
  let arrived = 0
  let longest = -Infinity
  for (const p of packets) {
    if (p.arrived_ns === undefined) continue
    // The clocks of the two ends have another zero each: only differences of the delay say something.
    const delay = p.arrived_ns - p.sent_ns
    least = Math.min(least, delay)
    longest = Math.max(longest, delay)
    arrived += 1
  }
  const lost = 1 - arrived / packets.length
  const queueMs = arrived > 0 ? (longest - least) / 1e6 : 0
  rate = queueMs > 50 || lost > 0.05 ? rate * 0.85 : rate + 20_000
}

function answerTo(turn) {
  const answer = { turn: turn.turn }
  for (const event of turn.events) {
    if (event.type === 'configure') {
      rate = event.start_bps
      answer.about = ABOUT
    }
    if (event.type === 'configure' || event.type === 'limits') {
      floor = event.floor_bps
      ceiling = event.ceiling_bps
    }
    if (event.type === 'feedback' && event.packets.length > 0) onFeedback(event.packets)
  }
  rate = Math.min(Math.max(rate, floor), ceiling)
  answer.media_bps = rate
  return answer
}

// A turn is a line, which may come in several parts.
let rest = ''
process.stdin.setEncoding('utf8')
process.stdin.on('data', (part) => {
  const lines = (rest + part).split('\n')
  rest = lines.pop()
  for (const line of lines) process.stdout.write(JSON.stringify(answerTo(JSON.parse(line))) + '\n')
})
