// Package weir offers Weir's controllers to Pion: an Estimator is a cc.BandwidthEstimator, for cc.NewInterceptor.
//
// It needs libweir where pkg-config finds it (crates/capi/install.sh). Streams have to carry transport-wide sequence
// numbers, which Pion's twcc.HeaderExtensionInterceptor writes; register it after cc.NewInterceptor, so that packets have their
// numbers when they come here.
package weir

// #cgo pkg-config: weir
// #include <weir.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const transportCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

// Bounds on the media rate and its first value, in bit/s.
type Bounds struct {
	Floor, Ceiling, Start uint64
}

// Estimator runs a controller of the library. It paces nothing: packets pass at once.
type Estimator struct {
	mutex    sync.Mutex
	handle   C.weir_handle
	begin    time.Time
	now      func() time.Time
	target   int
	onChange func(bitrate int)
}

// check makes an error of a status. The text is of the thread that called, on which the caller has locked itself.
func check(status C.weir_status) error {
	if status < 0 {
		return errors.New(C.GoString(C.weir_last_error()))
	}
	return nil
}

// New makes an estimator by a controller's name and parameters ("beta=0.8", or empty). now is the clock: time.Now.
func New(name, parameters string, bounds Bounds, now func() time.Time) (*Estimator, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cName, cParameters := C.CString(name), C.CString(parameters)
	defer C.free(unsafe.Pointer(cName))
	defer C.free(unsafe.Pointer(cParameters))
	setup := C.weir_setup{
		floor_bps: C.uint64_t(bounds.Floor), ceiling_bps: C.uint64_t(bounds.Ceiling), start_bps: C.uint64_t(bounds.Start),
		seed: 1,
	}
	setup.size = C.uint32_t(unsafe.Sizeof(setup))
	e := &Estimator{begin: now(), now: now}
	if err := check(C.weir_controller_new(cName, cParameters, &setup, &e.handle)); err != nil {
		return nil, err
	}
	e.target = int(bounds.Start)
	return e, nil
}

func (e *Estimator) nanos() C.int64_t { return C.int64_t(e.now().Sub(e.begin)) }

// AddStream takes the packets of a stream as sent; those without a transport-wide number are not seen.
func (e *Estimator) AddStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	var id uint8
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == transportCC {
			id = uint8(extension.ID)
		}
	}
	return interceptor.RTPWriterFunc(func(header *rtp.Header, payload []byte, a interceptor.Attributes) (int, error) {
		var wide rtp.TransportCCExtension
		if id != 0 && wide.Unmarshal(header.GetExtension(id)) == nil {
			packet := C.weir_sent_packet{
				flags:            C.WEIR_SENT_HAS_TRANSPORT_NUMBER | C.WEIR_SENT_HAS_RTP,
				bytes:            C.uint32_t(header.MarshalSize() + len(payload)),
				ssrc:             C.uint32_t(header.SSRC),
				rtp_sequence:     C.uint16_t(header.SequenceNumber),
				transport_number: C.uint16_t(wide.TransportSequence),
			}
			packet.size = C.uint32_t(unsafe.Sizeof(packet))
			e.mutex.Lock()
			packet.now_ns = e.nanos()
			runtime.LockOSThread()
			err := check(C.weir_controller_sent(e.handle, &packet, nil))
			runtime.UnlockOSThread()
			e.mutex.Unlock()
			if err != nil {
				return 0, err
			}
		}
		return writer.Write(header, payload, a)
	})
}

// WriteRTCP takes feedback.
func (e *Estimator) WriteRTCP(packets []rtcp.Packet, _ interceptor.Attributes) error {
	bytes, err := rtcp.Marshal(packets)
	if err != nil || len(bytes) == 0 {
		return err
	}
	runtime.LockOSThread()
	e.mutex.Lock()
	now := e.nanos()
	err = check(C.weir_controller_rtcp(e.handle, now, (*C.uint8_t)(&bytes[0]), C.size_t(len(bytes))))
	changed, onChange, target := false, e.onChange, C.weir_target{}
	if err == nil {
		var at C.int64_t
		if C.weir_controller_next_timeout(e.handle, &at, nil) == C.WEIR_STATUS_OK && at <= now {
			C.weir_controller_on_timeout(e.handle, now)
		}
		target.size = C.uint32_t(unsafe.Sizeof(target))
		err = check(C.weir_controller_target(e.handle, &target))
		changed = err == nil && e.target != int(target.media_bps)
		if changed {
			e.target = int(target.media_bps)
		}
	}
	e.mutex.Unlock()
	runtime.UnlockOSThread()
	if changed && onChange != nil {
		onChange(int(target.media_bps))
	}
	return err
}

// GetTargetBitrate is the rate for the encoders.
func (e *Estimator) GetTargetBitrate() int {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.target
}

// OnTargetBitrateChange sets what is called with a new rate.
func (e *Estimator) OnTargetBitrateChange(f func(bitrate int)) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.onChange = f
}

// GetStats has the controller's internal values by name.
func (e *Estimator) GetStats() map[string]any {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	var metrics [64]C.weir_metric
	var count C.size_t
	stats := map[string]any{}
	if C.weir_controller_metrics(e.handle, &metrics[0], 64, C.size_t(unsafe.Sizeof(metrics[0])), &count) == C.WEIR_STATUS_OK {
		for _, m := range metrics[:count] {
			stats[C.GoString(&m.name[0])] = float64(m.value)
		}
	}
	return stats
}

// Close frees the controller.
func (e *Estimator) Close() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return check(C.weir_free(e.handle))
}
