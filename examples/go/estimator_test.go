package weir

import (
	"strings"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/cc"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

var _ cc.BandwidthEstimator = (*Estimator)(nil)

// A call over a link of 1 Mbit/s in simulated time: Pion's chain numbers the packets, Pion's recorder makes the feedback.
func call(t *testing.T, name string) float64 {
	t.Helper()
	clock := time.Unix(0, 0)
	var estimator *Estimator
	congestion, err := cc.NewInterceptor(func() (cc.BandwidthEstimator, error) {
		var err error
		estimator, err = New(name, "", Bounds{100_000, 3_000_000, 300_000}, func() time.Time { return clock })
		return estimator, err
	})
	if err != nil {
		t.Fatal(err)
	}
	extension, err := twcc.NewHeaderExtensionInterceptor()
	if err != nil {
		t.Fatal(err)
	}
	registry := interceptor.Registry{}
	registry.Add(congestion)
	registry.Add(extension)
	chain, err := registry.Build("call")
	if err != nil {
		t.Fatal(err)
	}
	const linkBps, delay, queue = 1_000_000, 25 * time.Millisecond, 300 * time.Millisecond
	type arrival struct {
		number uint16
		at     time.Time
	}
	var (
		arrivals  []arrival
		free      time.Time
		carried   int
		changes   int
		recorder  = twcc.NewRecorder(1)
		toRead    []rtcp.Packet
		sequence  uint16
		budget    = 0
		start     = clock
		payload   = make([]byte, 1_150)
		measuring = start.Add(10 * time.Second)
	)
	estimator.OnTargetBitrateChange(func(int) { changes++ })
	link := interceptor.RTPWriterFunc(func(h *rtp.Header, p []byte, _ interceptor.Attributes) (int, error) {
		var wide rtp.TransportCCExtension
		if err := wide.Unmarshal(h.GetExtension(1)); err != nil {
			return 0, err
		}
		bytes := h.MarshalSize() + len(p)
		if free.Sub(clock) > queue {
			return bytes, nil
		}
		if free.Before(clock) {
			free = clock
		}
		free = free.Add(time.Duration(bytes) * 8 * time.Second / linkBps)
		arrivals = append(arrivals, arrival{wide.TransportSequence, free.Add(delay)})
		if clock.After(measuring) {
			carried += bytes * 8
		}
		return bytes, nil
	})
	stream := chain.BindLocalStream(&interceptor.StreamInfo{
		SSRC:                7,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: transportCC, ID: 1}},
	}, link)
	reader := chain.BindRTCPReader(interceptor.RTCPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			bytes, err := rtcp.Marshal(toRead)
			return copy(b, bytes), a, err
		}))
	buffer := make([]byte, 1<<16)
	for ; clock.Sub(start) < 30*time.Second; clock = clock.Add(5 * time.Millisecond) {
		budget = min(budget+estimator.GetTargetBitrate()/200, 40_000)
		for ; budget > 0; budget -= 8 * len(payload) {
			header := &rtp.Header{Version: 2, SSRC: 7, SequenceNumber: sequence}
			sequence++
			if _, err := stream.Write(header, payload, nil); err != nil {
				t.Fatal(err)
			}
		}
		for len(arrivals) > 0 && !arrivals[0].at.After(clock) {
			recorder.Record(7, arrivals[0].number, arrivals[0].at.Sub(start).Microseconds())
			arrivals = arrivals[1:]
		}
		if clock.Sub(start)%(50*time.Millisecond) == 0 {
			if toRead = recorder.BuildFeedbackPacket(); len(toRead) > 0 {
				if _, _, err := reader.Read(buffer, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if changes == 0 || len(estimator.GetStats()) == 0 {
		t.Errorf("%s: %d changes, %v", name, changes, estimator.GetStats())
	}
	if err := chain.Close(); err != nil {
		t.Error(err)
	}
	if err := estimator.Close(); err == nil || !strings.Contains(err.Error(), "was freed") {
		t.Errorf("closed twice: %v", err)
	}
	return float64(carried) / (20 * linkBps)
}

func TestControllersUseALinkInPionsChain(t *testing.T) {
	for _, name := range []string{"gcc", "nada", "scream2", "sluice"} {
		share := call(t, name)
		t.Logf("%s: %.0f %% of the link", name, 100*share)
		if share < 0.6 || share > 1.01 {
			t.Errorf("%s: %.2f of the link", name, share)
		}
	}
}

func TestAWrongNameIsAnError(t *testing.T) {
	_, err := New("nadda", "", Bounds{1, 2, 1}, time.Now)
	if err == nil || !strings.Contains(err.Error(), "did you mean `nada`?") {
		t.Error(err)
	}
}
