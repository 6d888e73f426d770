//go:build !unix

package resilience

import "time"

func (s *ProcessSampler) processTime() (time.Duration, error) {
	p, err := s.process()
	if err != nil {
		return 0, err
	}
	t, err := p.Times()
	if err != nil {
		return 0, err
	}
	return time.Duration((t.User + t.System) * float64(time.Second)), nil
}
