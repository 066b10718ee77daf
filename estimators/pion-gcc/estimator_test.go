// Package main is the sender-side bandwidth estimator of github.com/pion/interceptor (pkg/gcc) behind Weir's `exec:` protocol.
//
// It gives the library what a call gives it: each packet by the writer of a stream, each RTCP datagram by WriteRTCP. The library reads
// the wall clock in many places and works in goroutines of its own; both stand inside a bubble of testing/synctest, whose clock moves only
// while everything in it waits. A read of standard input does not count as waiting, so the clock stands still between turns, and moves
// exactly to the time of an event in a time.Sleep. A bubble needs a test around it: the program is a test binary with one test.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	twccURI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
	twccID  = 1
	ssrc    = 1
	// A fixed RTP header with the extension above.
	headerBytes = 20
	// The library's own pacer sends at so many times the target.
	pacing = 1.5
)

// Kinds of events, and the bytes that they take without what follows them (docs/estimators.md).
const (
	kindSent = 1
	kindRTCP = 8
	head     = 16
)

var (
	answers *os.File
	// The library's version, by the linker.
	library = "of an unknown version"
)

var sizes = [...]int{0, 48, 32, 64, 24, 40, 32, 16, 16, 40, 24, 32}

type configure struct {
	Turn   uint64 `json:"turn"`
	Events []struct {
		Type    string `json:"type"`
		NowNs   int64  `json:"now_ns"`
		Floor   int    `json:"floor_bps"`
		Ceiling int    `json:"ceiling_bps"`
		Start   int    `json:"start_bps"`
	} `json:"events"`
}

type estimator struct {
	bwe    *gcc.SendSideBWE
	writer interceptor.RTPWriter
	begin  time.Time
	zeros  []byte
}

// call is one call: turns on in, answers on out.
func call(in *bufio.Reader, out *bufio.Writer) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var first configure
	if err := json.Unmarshal(line, &first); err != nil {
		return err
	}
	if len(first.Events) == 0 || first.Events[0].Type != "configure" {
		return errors.New("the first event is not configure")
	}
	bounds := first.Events[0]
	bwe, err := gcc.NewSendSideBWE(
		gcc.SendSideBWEInitialBitrate(bounds.Start),
		gcc.SendSideBWEMinBitrate(bounds.Floor),
		gcc.SendSideBWEMaxBitrate(bounds.Ceiling),
		// Weir paces; `sent` has the time at which a packet left.
		gcc.SendSideBWEPacer(gcc.NewNoOpPacer()),
	)
	if err != nil {
		return err
	}
	defer bwe.Close()
	info := &interceptor.StreamInfo{
		SSRC:                ssrc,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: twccURI, ID: twccID}},
	}
	sink := interceptor.RTPWriterFunc(func(_ *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
		return headerBytes + len(payload), nil
	})
	e := &estimator{bwe: bwe, writer: bwe.AddStream(info, sink), begin: time.Now().Add(-time.Duration(bounds.NowNs))}
	about := map[string]any{
		"version": 2, "name": "pion-gcc " + library, "form": "binary",
		"events": []string{"sent", "rtcp"}, "answers": []string{"rtcp"},
	}
	answer, err := json.Marshal(map[string]any{
		"turn": 0, "media_bps": e.rate(), "pacing_bps": pacing * e.rate(), "about": about,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", answer)
	if err := out.Flush(); err != nil {
		return err
	}
	var top [head]byte
	var body []byte
	for {
		if _, err := io.ReadFull(in, top[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		length := int(binary.LittleEndian.Uint32(top[0:]))
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(in, body); err != nil {
			return err
		}
		if err := e.turn(body); err != nil {
			return err
		}
		if _, err := out.Write(e.answer(binary.LittleEndian.Uint64(top[8:]))); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func (e *estimator) turn(body []byte) error {
	for len(body) > 0 {
		kind := int(body[0])
		if kind == 0 || kind >= len(sizes) || len(body) < sizes[kind] {
			return fmt.Errorf("no event of kind %d in %d bytes", kind, len(body))
		}
		now := time.Duration(binary.LittleEndian.Uint64(body[8:]))
		if wait := time.Until(e.begin.Add(now)); wait > 0 {
			time.Sleep(wait)
		}
		size := sizes[kind]
		switch kind {
		case kindSent:
			sequence := binary.LittleEndian.Uint64(body[16:])
			if err := e.sent(sequence, int(binary.LittleEndian.Uint64(body[24:]))); err != nil {
				return err
			}
		case kindRTCP:
			bytes := int(binary.LittleEndian.Uint32(body[4:]))
			size += (bytes + 7) / 8 * 8
			if len(body) < size {
				return errors.New("a datagram of RTCP is cut")
			}
			if err := e.rtcp(body[head : head+bytes]); err != nil {
				return err
			}
		}
		body = body[size:]
	}
	return nil
}

func (e *estimator) sent(sequence uint64, size int) error {
	header := rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: uint16(sequence)}
	var extension [2]byte
	binary.BigEndian.PutUint16(extension[:], uint16(sequence))
	if err := header.SetExtension(twccID, extension[:]); err != nil {
		return err
	}
	payload := max(size-headerBytes, 0)
	if len(e.zeros) < payload {
		e.zeros = make([]byte, payload)
	}
	_, err := e.writer.Write(&header, e.zeros[:payload], nil)
	return err
}

func (e *estimator) rtcp(datagram []byte) error {
	packets, err := rtcp.Unmarshal(datagram)
	if err != nil {
		return err
	}
	err = e.bwe.WriteRTCP(packets, nil)
	synctest.Wait()
	// As in a call, where the interceptor logs it and goes on.
	if err != nil {
		fmt.Fprintln(os.Stderr, "WriteRTCP:", err)
	}
	return nil
}

func (e *estimator) rate() float64 { return float64(e.bwe.GetTargetBitrate()) }

func (e *estimator) answer(turn uint64) []byte {
	var bytes [72]byte
	binary.LittleEndian.PutUint32(bytes[0:], 72-head)
	binary.LittleEndian.PutUint64(bytes[8:], turn)
	binary.LittleEndian.PutUint32(bytes[16:], 1) // pacing_bps is there
	binary.LittleEndian.PutUint64(bytes[24:], math.Float64bits(e.rate()))
	binary.LittleEndian.PutUint64(bytes[32:], math.Float64bits(pacing*e.rate()))
	return bytes[:]
}

func TestCall(t *testing.T) {
	var failure error
	synctest.Test(t, func(*testing.T) { failure = call(bufio.NewReader(os.Stdin), bufio.NewWriter(answers)) })
	if failure != nil {
		fmt.Fprintln(os.Stderr, failure)
		os.Exit(1)
	}
}

func TestMain(m *testing.M) {
	// The verdict of the test has no place among the answers.
	answers, os.Stdout = os.Stdout, os.Stderr
	os.Exit(m.Run())
}
