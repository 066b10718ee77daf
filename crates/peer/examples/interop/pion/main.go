// One call of Pion's with a service of Weir's. The job is the only argument, in JSON; so is the last line of the output. FFmpeg codes what it
// sends and decodes what it has received: Pion has no codecs.
package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/h264reader"
	"github.com/pion/webrtc/v4/pkg/media/ivfreader"
	"github.com/pion/webrtc/v4/pkg/media/samplebuilder"
)

type job struct {
	Service, Token, Way, Codec, Feedback string
	Seconds                              float64
	Size                                 [2]int
}

type said struct {
	Offer           string  `json:"offer"`
	Answer          string  `json:"answer"`
	State           string  `json:"state"`
	Error           *string `json:"error"`
	Frames          int     `json:"frames"`
	Packets         int     `json:"packets"`
	Retransmissions *int    `json:"retransmissions"`
}

const (
	frameTime = time.Second / 30
	waiting   = 12 * time.Second
)

// engine registers one codec with its retransmissions, and one format of feedback.
func engine(j job) (*webrtc.API, error) {
	m, r := &webrtc.MediaEngine{}, &interceptor.Registry{}
	c := webrtc.RTPCodecCapability{MimeType: mime(j), ClockRate: 90000, RTCPFeedback: []webrtc.RTCPFeedback{{Type: "ccm", Parameter: "fir"}}}
	if j.Codec == "h264" {
		c.SDPFmtpLine = "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"
	}
	rtx := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeRTX, ClockRate: 90000, SDPFmtpLine: "apt=96"}
	for n, capability := range []webrtc.RTPCodecCapability{c, rtx} {
		p := webrtc.RTPCodecParameters{RTPCodecCapability: capability, PayloadType: webrtc.PayloadType(96 + n)}
		if err := m.RegisterCodec(p, webrtc.RTPCodecTypeVideo); err != nil {
			return nil, err
		}
	}
	if err := webrtc.ConfigureNack(m, r); err != nil {
		return nil, err
	}
	if err := webrtc.ConfigureRTCPReports(r); err != nil {
		return nil, err
	}
	feedback := []func(*webrtc.MediaEngine, *interceptor.Registry) error{webrtc.ConfigureTWCCHeaderExtensionSender, webrtc.ConfigureTWCCSender}
	if j.Feedback == "ccfb" {
		feedback = feedback[:0]
		feedback = append(feedback, webrtc.ConfigureCongestionControlFeedback)
	}
	for _, configure := range feedback {
		if err := configure(m, r); err != nil {
			return nil, err
		}
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	return webrtc.NewAPI(webrtc.WithMediaEngine(m), webrtc.WithInterceptorRegistry(r), webrtc.WithSettingEngine(settings)), nil
}

func mime(j job) string {
	if j.Codec == "h264" {
		return webrtc.MimeTypeH264
	}
	return webrtc.MimeTypeVP8
}

// film codes ten seconds for it to send.
func film(j job, folder string) (string, error) {
	file := filepath.Join(folder, "film.ivf")
	coder := []string{"-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"}
	if j.Codec == "h264" {
		file = filepath.Join(folder, "film.h264")
		coder = []string{"-c:v", "libx264", "-profile:v", "baseline", "-tune", "zerolatency", "-preset", "ultrafast", "-threads", "1", "-bsf:v", "h264_mp4toannexb"}
	}
	source := fmt.Sprintf("testsrc2=size=%dx%d:rate=30:duration=10", j.Size[0], j.Size[1])
	arguments := append([]string{"-v", "error", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", "-b:v", "600k", "-g", "30"}, coder...)
	out, err := exec.Command("ffmpeg", append(arguments, file)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ffmpeg: %s", out)
	}
	return file, nil
}

// pictures reads a film; the function gives the next coded picture.
func pictures(j job, file string) (func() ([]byte, error), error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	if j.Codec != "h264" {
		reader, _, err := ivfreader.NewWith(f)
		if err != nil {
			return nil, err
		}
		return func() ([]byte, error) { frame, _, err := reader.ParseNextFrame(); return frame, err }, nil
	}
	reader, err := h264reader.NewReader(f)
	if err != nil {
		return nil, err
	}
	return func() ([]byte, error) {
		picture := []byte{}
		for {
			nal, err := reader.NextNAL()
			if err != nil {
				return nil, err
			}
			picture = append(append(picture, 0, 0, 0, 1), nal.Data...)
			if t := nal.UnitType; t == h264reader.NalUnitTypeCodedSliceNonIdr || t == h264reader.NalUnitTypeCodedSliceIdr {
				return picture, nil
			}
		}
	}, nil
}

type receiver struct {
	sync.Mutex
	out                              *os.File
	frames, packets, retransmissions int
}

func (r *receiver) read(j job, track *webrtc.TrackRemote) {
	var depacketizer rtp.Depacketizer = &codecs.VP8Packet{}
	if j.Codec == "h264" {
		depacketizer = &codecs.H264Packet{}
	} else {
		header := make([]byte, 32)
		copy(header, "DKIF\x00\x00\x20\x00VP80")
		binary.LittleEndian.PutUint16(header[12:], uint16(j.Size[0]))
		binary.LittleEndian.PutUint16(header[14:], uint16(j.Size[1]))
		binary.LittleEndian.PutUint32(header[16:], 30)
		binary.LittleEndian.PutUint32(header[20:], 1)
		r.out.Write(header)
	}
	builder := samplebuilder.New(200, depacketizer, 90000)
	seen := map[uint16]bool{}
	for {
		packet, attributes, err := track.ReadRTP()
		if err != nil {
			return
		}
		r.Lock()
		r.packets++
		// It requests packets again that retransmissions have replaced.
		if seen[packet.SequenceNumber] {
			r.Unlock()
			continue
		}
		seen[packet.SequenceNumber] = true
		delete(seen, packet.SequenceNumber-10000)
		if attributes.Get(webrtc.AttributeRtxPayloadType) != nil {
			r.retransmissions++
		}
		builder.Push(packet)
		for sample := builder.Pop(); sample != nil; sample = builder.Pop() {
			if j.Codec != "h264" {
				header := make([]byte, 12)
				binary.LittleEndian.PutUint32(header, uint32(len(sample.Data)))
				binary.LittleEndian.PutUint64(header[4:], uint64(r.frames))
				r.out.Write(header)
			}
			r.out.Write(sample.Data)
			r.frames++
		}
		r.Unlock()
	}
}

func call(j job, s *said) error {
	folder, err := os.MkdirTemp("", "interop")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	api, err := engine(j)
	if err != nil {
		return err
	}
	peer, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return err
	}
	defer peer.Close()
	received := receiver{}
	var next func() ([]byte, error)
	var track *webrtc.TrackLocalStaticSample
	if j.Way == "whip" {
		file, err := film(j, folder)
		if err != nil {
			return err
		}
		if next, err = pictures(j, file); err != nil {
			return err
		}
		if track, err = webrtc.NewTrackLocalStaticSample(webrtc.RTPCodecCapability{MimeType: mime(j)}, "video", "pion"); err != nil {
			return err
		}
		init := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
		transceiver, err := peer.AddTransceiverFromTrack(track, init)
		if err != nil {
			return err
		}
		go func() { // Interceptors read what the other end reports only if somebody reads.
			buffer := make([]byte, 1500)
			for {
				if _, _, err := transceiver.Sender().Read(buffer); err != nil {
					return
				}
			}
		}()
	} else {
		if received.out, err = os.Create(filepath.Join(folder, "received."+map[string]string{"h264": "h264", "vp8": "ivf"}[j.Codec])); err != nil {
			return err
		}
		init := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
		if _, err := peer.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, init); err != nil {
			return err
		}
		peer.OnTrack(func(t *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { received.read(j, t) })
	}
	connected := make(chan struct{})
	var once sync.Once
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			once.Do(func() { close(connected) })
		}
	})
	offer, err := peer.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(offer); err != nil {
		return err
	}
	<-gathered
	s.Offer = peer.LocalDescription().SDP
	location := ""
	if j.Way == "files" {
		err = exchange(j, s)
	} else {
		location, err = ask(j, s)
	}
	if err != nil {
		return err
	}
	if err := peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: s.Answer}); err != nil {
		return err
	}
	select {
	case <-connected:
	case <-time.After(waiting):
		return errors.New("it has not connected within 12 s")
	}
	end := time.Now().Add(time.Duration(j.Seconds * float64(time.Second)))
	if next != nil {
		ticker := time.NewTicker(frameTime)
		defer ticker.Stop()
		for time.Now().Before(end) {
			picture, err := next()
			if err != nil {
				return err
			}
			if err := track.WriteSample(media.Sample{Data: picture, Duration: frameTime}); err != nil {
				return err
			}
			s.Frames++
			<-ticker.C
		}
	}
	time.Sleep(time.Until(end))
	s.State = peer.ConnectionState().String()
	if location != "" {
		if _, err := request(j, "DELETE", location, ""); err != nil {
			return err
		}
	}
	if received.out != nil {
		received.Lock()
		defer received.Unlock()
		s.Packets, s.Retransmissions = received.packets, &received.retransmissions
		received.out.Close()
		return decode(received.out.Name(), s)
	}
	return nil
}

func decode(file string, s *said) error {
	out, err := exec.Command("ffprobe", "-v", "quiet", "-count_frames", "-select_streams", "v", "-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", file).Output()
	if err != nil {
		return fmt.Errorf("ffprobe: %w", err)
	}
	s.Frames, err = strconv.Atoi(strings.TrimSpace(string(out)))
	return err
}

func request(j job, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequest(method, j.Service+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("authorization", "Bearer "+j.Token)
	r.Header.Set("content-type", "application/sdp")
	return http.DefaultClient.Do(r)
}

func ask(j job, s *said) (string, error) {
	answer, err := request(j, "POST", "/"+j.Way+"?codec="+j.Codec, s.Offer)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	s.Answer = string(text)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = errors.New(s.Answer)
	}
	return answer.Header.Get("location"), err
}

// exchange writes the offer to a file in the folder that stands for the service, and waits for the answer, both as the examples of Pion and of
// webrtc-rs have them: JSON in base64.
func exchange(j job, s *said) error {
	offer, err := json.Marshal(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: s.Offer})
	if err != nil {
		return err
	}
	file := filepath.Join(j.Service, "offer")
	if err := os.WriteFile(file+".part", []byte(base64.StdEncoding.EncodeToString(offer)), 0o644); err != nil {
		return err
	}
	if err := os.Rename(file+".part", file); err != nil {
		return err
	}
	for end := time.Now().Add(waiting); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(j.Service, "answer"))
		if err != nil {
			continue
		}
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			return err
		}
		answer := webrtc.SessionDescription{}
		err = json.Unmarshal(decoded, &answer)
		s.Answer = answer.SDP
		return err
	}
	return errors.New("no answer within 12 s")
}

func main() {
	j, s := job{}, said{}
	err := json.Unmarshal([]byte(os.Args[1]), &j)
	if err == nil {
		err = call(j, &s)
	}
	if err != nil {
		text := err.Error()
		s.Error = &text
	}
	json.NewEncoder(os.Stdout).Encode(s)
}
