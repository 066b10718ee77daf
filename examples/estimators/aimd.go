// An estimator for Weir in Go, without a dependency: that of aimd.py.
//
//	go build -o aimd-go examples/estimators/aimd.go
//	weir estimator check ./aimd-go
//	weir compare --controllers exec:./aimd-go,gcc --scenario quick
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"math"
	"os"
)

type packet struct {
	Sent int64 `json:"sent_ns"`
	// Absent if the packet is reported lost.
	Arrived *int64 `json:"arrived_ns"`
}

type event struct {
	Type    string   `json:"type"`
	Floor   float64  `json:"floor_bps"`
	Ceiling float64  `json:"ceiling_bps"`
	Start   float64  `json:"start_bps"`
	Packets []packet `json:"packets"`
}

type turn struct {
	Turn   uint64  `json:"turn"`
	Events []event `json:"events"`
}

type answer struct {
	Turn  uint64         `json:"turn"`
	Media float64        `json:"media_bps"`
	About map[string]any `json:"about,omitempty"`
}

var about = map[string]any{
	"version":  1,
	"name":     "aimd.go",
	"events":   []string{"feedback", "limits"},
	"answers":  []string{"feedback", "limits"},
	"feedback": map[string]any{"interval_ms": 100},
}

var (
	rate, floor, ceiling float64
	least                int64 = math.MaxInt64
)

func onFeedback(packets []packet) {
	arrived, longest := 0, int64(math.MinInt64)
	for _, p := range packets {
		if p.Arrived == nil {
			continue
		}
		// The clocks of the two ends have another zero each: only differences of the delay say something.
		delay := *p.Arrived - p.Sent
		least, longest = min(least, delay), max(longest, delay)
		arrived++
	}
	lost := 1 - float64(arrived)/float64(len(packets))
	if arrived > 0 && float64(longest-least)/1e6 > 50 || lost > 0.05 {
		rate *= 0.85
	} else {
		rate += 20_000
	}
}

func answerTo(t turn) answer {
	a := answer{Turn: t.Turn}
	for _, e := range t.Events {
		if e.Type == "configure" {
			rate, a.About = e.Start, about
		}
		if e.Type == "configure" || e.Type == "limits" {
			floor, ceiling = e.Floor, e.Ceiling
		}
		if e.Type == "feedback" && len(e.Packets) > 0 {
			onFeedback(e.Packets)
		}
	}
	rate = min(max(rate, floor), ceiling)
	a.Media = rate
	return a
}

func main() {
	turns, answers := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for turns.More() {
		var t turn
		if err := turns.Decode(&t); err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(answerTo(t)); err != nil {
			log.Fatal(err)
		}
	}
}
