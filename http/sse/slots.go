package sse

import (
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
)

// liveStreams are the streams whose connections were taken over; net/http no longer tracks these connections. Its zero
// value is ready to use.
type liveStreams struct {
	mu             sync.Mutex
	slots          []openStream  // guarded by mu
	free           []int32       // guarded by mu; the free indexes of slots
	open           int           // guarded by mu
	lastGeneration int32         // guarded by mu; counts up, and so distinguishes the successive streams in one slot
	disconnects    *disconnects  // guarded by mu; nil while no stream is open, or if it could not be created
	stop           chan struct{} // guarded by mu; ends the sweep
	drained        chan struct{} // guarded by mu; closed when the last stream ends; nil: no waiter
}

// streamSlot identifies a stream in liveStreams: its index in slots, and the value of lastGeneration when it was added.
type streamSlot struct{ index, generation int32 }

// openStream is the stream in a slot.
type openStream struct {
	watchedStream // nil: the slot is free
	generation    int32
}

// watchedStream is a stream for which its connection and the time are watched. Its methods do not block.
type watchedStream interface {
	end(cause int32)
	checkHeartbeat(now time.Duration)
}

// add adds a stream, and returns its slot for remove.
func (s *liveStreams) add(stream watchedStream, conn net.Conn, log *zap.Logger) streamSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == 0 {
		s.begin(log)
	}
	s.open++
	s.lastGeneration++
	slot := streamSlot{int32(len(s.slots)), s.lastGeneration} // there are never that many connections
	if last := len(s.free) - 1; last >= 0 {
		slot.index = s.free[last]
		s.free = s.free[:last]
	} else {
		s.slots = append(s.slots, openStream{})
	}
	s.slots[slot.index] = openStream{stream, slot.generation}
	if err := s.disconnects.add(conn, slot); err != nil {
		log.Warn("a connection cannot be watched; only a write to it detects a disconnect", zap.Error(err))
	}
	return slot
}

// begin starts the watch for disconnects and the sweep. mu must be held.
func (s *liveStreams) begin(log *zap.Logger) {
	var err error
	if s.disconnects, err = newDisconnects(s.clientDisconnected); err != nil {
		log.Error("connections cannot be watched; only a write to a connection detects a disconnect", zap.Error(err))
	}
	s.stop = make(chan struct{})
	go sweep(s.stop, s.each)
}

func (s *liveStreams) remove(slot streamSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots[slot.index] = openStream{}
	s.free = append(s.free, slot.index)
	if s.open--; s.open > 0 {
		return
	}
	s.slots, s.free = nil, nil
	close(s.stop)
	s.disconnects.close()
	s.disconnects = nil
	if s.drained != nil {
		close(s.drained)
		s.drained = nil
	}
}

// clientDisconnected ends the stream whose client closed its side of the connection.
func (s *liveStreams) clientDisconnected(slot streamSlot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(slot.index) >= len(s.slots) {
		return
	}
	if open := s.slots[slot.index]; open.watchedStream != nil && open.generation == slot.generation {
		open.end(causeDisconnected)
	}
}

func (s *liveStreams) each(do func(watchedStream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.slots {
		if open.watchedStream != nil {
			do(open.watchedStream)
		}
	}
}

// whenDrained returns a channel that is closed when no stream is open.
func (s *liveStreams) whenDrained() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	empty := s.drained
	if s.open == 0 {
		close(s.drained)
		s.drained = nil
	}
	return empty
}
