package resilience

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// The levels of degradation. Each has a switch of its own; the level shown is the highest that is on.
const (
	// LevelStoreLost: the store is lost, and limits are judged by each instance for its part.
	LevelStoreLost = 1
	// LevelDeviceLifted: the limits of the device layer are not judged.
	LevelDeviceLifted = 2
	// LevelRestricted: only listed users pass.
	LevelRestricted = 3
)

// Who turned a switch.
const (
	ByHand      = "hand"
	Automatic   = "automatic"
	handLevels  = 2 // the levels from LevelDeviceLifted on have a switch for hands
	switchCount = 3
)

// Switch is one level's switch as it is now.
type Switch struct {
	// Level is 1 to 3, and Name says what it is in a few words.
	Level int    `json:"level"`
	Name  string `json:"name"`
	On    bool   `json:"on"`
	// By is [ByHand] or [Automatic]: who turned it to where it is; "" if it was never turned.
	By string `json:"by,omitempty"`
	// Why is what turned it, and TurnsOff what does not work while it is on.
	Why      string `json:"why,omitempty"`
	TurnsOff string `json:"turns_off"`
	// Since is when it was turned. Until is when it goes off by itself; zero if it does not, or nobody can tell.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Pending tells that it was turned by hand here, and the fleet cannot be told yet.
	Pending bool `json:"pending,omitempty"`
}

// SwitchRequest turns a switch by hand.
type SwitchRequest struct {
	// Level is 2 or 3; level 1 is a fact.
	Level int
	On    bool
	// Why is shown, logged and sent to the fleet, at most 500 bytes of it.
	Why string
}

// LevelsPolicy says when level 2 turns on by itself.
type LevelsPolicy struct {
	// Automatic lets it. Otherwise the same only alerts: whoever wants the device layer gone would like to throw this switch.
	Automatic bool
	// DeniedDevices is the share, above 0 to 1, of the distinct devices seen in For over which it turns on. Default 0.2.
	DeniedDevices float64
	// For is the time over which devices are counted, in sixths. Default 1 min.
	For time.Duration
	// RetryAfter is how long it then stays on; also how long it stays off after a hand has turned it off. Default 10 min.
	RetryAfter time.Duration
}

func (p LevelsPolicy) withDefaults() LevelsPolicy {
	p.DeniedDevices, p.For, p.RetryAfter = positive(p.DeniedDevices, 0.2), positive(p.For, time.Minute), positive(p.RetryAfter, 10*time.Minute)
	return p
}

// LevelObserver is told what Levels does. Its methods are called one at a time; they must not block, nor call Levels.
type LevelObserver interface {
	// LevelChanged tells that a switch was turned, by "automatic" or "hand", and why in a few English words.
	LevelChanged(level int, on bool, by, why string)
	// LevelAlert tells that a level would be worth turning on, once until what it is about has passed.
	LevelAlert(level int, why string)
}

// LevelsConfig says what the levels go by. The zero value is ready: nothing is ever lost, and nobody else told.
type LevelsConfig struct {
	// Fleet carries switches to the other instances and theirs here. Nil stands for an instance alone, which forgets its switches
	// when it ends.
	Fleet *Fleet
	// Lost tells whether the store is lost; it is asked every 250 ms: [Breakers.Lost] is one. Default: never.
	Lost func() bool
	// LostWhy says in a few words what is lost. Default "the store does not answer".
	LostWhy func() string
	// Settle is how long the store must not have been lost for level 1 to end. Default 2 s.
	Settle time.Duration
	// Policy is as with SetPolicy.
	Policy LevelsPolicy
	// Observer, if set, is told of every switch.
	Observer LevelObserver
	// Logger gets a line for every switch and alert. Default: nothing is logged.
	Logger *slog.Logger
}

func (c LevelsConfig) withDefaults() LevelsConfig {
	if c.Lost == nil {
		c.Lost = func() bool { return false }
	}
	if c.LostWhy == nil {
		c.LostWhy = func() string { return "the store does not answer" }
	}
	c.Settle, c.Policy = positive(c.Settle, 2*time.Second), c.Policy.withDefaults()
	if c.Observer == nil {
		c.Observer = unheard{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// unheard is told and does nothing.
type unheard struct{}

func (unheard) LevelChanged(int, bool, string, string) {}
func (unheard) LevelAlert(int, string)                 {}

const (
	// levelsEvery is how often the levels are looked at.
	levelsEvery = 250 * time.Millisecond
	// publishRetry is when a note is tried again that could not be left, and publishTime how long one try may take.
	publishRetry = time.Second
	publishTime  = time.Second
	maxWhy       = 500
)

// Levels are the switches by which a service degrades in steps. Make it with [NewLevels]; it is safe for concurrent use, and must be
// closed. docs/levels.md says what turns each switch, and what it turns off.
type Levels struct {
	cfg     LevelsConfig
	on      [switchCount]atomic.Bool
	devices *devices // add is for all; the rest is guarded by mu

	mu       sync.Mutex
	policy   LevelsPolicy
	switches [switchCount]Switch
	lost     lostStore
	hands    [handLevels]hand
	auto     timedNote // level 2 is on by itself
	held     timedNote // a hand has turned it off: it does not turn on by itself
	alerted  bool

	gate chan struct{} // held while notes are left, so that an older never follows a newer
	wake chan struct{}
	stop context.CancelFunc
	over sync.WaitGroup
}

// NewLevels returns switches that are all off but for what the fleet has set, and begins to look after them.
func NewLevels(cfg LevelsConfig) *Levels {
	l := &Levels{cfg: cfg.withDefaults(), gate: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
	l.policy = l.cfg.Policy
	l.devices = newDevices(l.policy.For, time.Now())
	l.switches = [switchCount]Switch{
		{Level: LevelStoreLost, Name: "store lost", TurnsOff: "limits shared by all instances: each admits its own part"},
		{Level: LevelDeviceLifted, Name: "device layer lifted", TurnsOff: "the limits of the device layer; lists, lockouts and the other layers stay"},
		{Level: LevelRestricted, Name: "restricted", TurnsOff: "the service for everybody who is not on the lists of l3"},
	}
	if cfg.Fleet != nil {
		cfg.Fleet.OnNote(l.noted)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.over.Go(func() { l.look(ctx) })
	l.over.Go(func() { l.publishAll(ctx) })
	return l
}

// Close ends looking after the switches, which stay as they are. It may be called again.
func (l *Levels) Close() error {
	l.stop()
	l.over.Wait()
	return nil
}

// StoreLost tells whether level 1 is on. It is one atomic load, as the next two.
func (l *Levels) StoreLost() bool { return l.on[LevelStoreLost-1].Load() }

// DeviceLifted tells whether level 2 is on.
func (l *Levels) DeviceLifted() bool { return l.on[LevelDeviceLifted-1].Load() }

// Restricted tells whether level 3 is on.
func (l *Levels) Restricted() bool { return l.on[LevelRestricted-1].Load() }

// Level returns the highest level that is on, 0 if none is.
func (l *Levels) Level() int {
	for i := range l.on {
		if level := switchCount - i; l.on[level-1].Load() {
			return level
		}
	}
	return 0
}

// Device notes that a request came from a device, by a hash of it, and whether nothing but the device layer denied it. It takes no
// lock and allocates nothing.
func (l *Levels) Device(device uint64, deniedAlone bool) { l.devices.add(device, deniedAlone) }

// Switches returns the three switches, level 1 first.
func (l *Levels) Switches() []Switch {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.switches
	for i := range l.hands {
		all[LevelDeviceLifted-1+i].Pending = l.hands[i].pending
	}
	return all[:]
}

// SetPolicy replaces the policy. An automatic level 2 ends if it is not allowed any more.
func (l *Levels) SetPolicy(p LevelsPolicy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, before := p.withDefaults(), l.policy
	if l.policy = p; p.For != before.For {
		l.devices.restart(p.For, time.Now())
	}
	l.apply(time.Now())
}

// Set turns a switch by hand, here at once, and on every other instance of the fleet when it beats next. A switch that a hand has
// turned on stays on, over restarts too, until a hand turns it off, and beats one that turned by itself: level 2, turned off by hand,
// does not turn on by itself for the policy's RetryAfter. If the fleet cannot be reached the switch is Pending, and sent when it can.
// The error, an [*headgate.Error] with CodeUnsupported, is for a level that has no such switch.
func (l *Levels) Set(ctx context.Context, r SwitchRequest) error {
	if r.Level < LevelDeviceLifted || r.Level > LevelRestricted {
		return &headgate.Error{Code: headgate.CodeUnsupported, Charge: -1, Message: fmt.Sprintf("level %d cannot be turned by hand: 2 and 3 can", r.Level)}
	}
	l.turn(r)
	if err := l.publish(ctx); err != nil {
		l.cfg.Logger.Warn("the fleet does not know of the switch yet", "switch", switchName(r.Level), "on", r.On, "error", err)
		l.nudge()
	}
	return nil
}

func (l *Levels) turn(r SwitchRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, shared := time.Now(), l.shared()
	h := &l.hands[r.Level-LevelDeviceLifted]
	*h = hand{state: handState{
		Level: r.Level, On: r.On, By: ByHand, Why: tidy(r.Why), Since: now.UTC().Truncate(time.Millisecond), Revision: after(h.state.Revision),
	}, pending: shared, blind: shared && !l.cfg.Fleet.heard.Load()}
	if r.Level == LevelDeviceLifted && !r.On {
		l.held.start(&h.state, now, l.policy.RetryAfter, shared)
	}
	l.apply(now)
}

// shared tells whether there is anybody to tell.
func (l *Levels) shared() bool { return l.cfg.Fleet != nil && l.cfg.Fleet.board != nil }

// tidy makes a reason one line of bounded length.
func tidy(why string) string {
	why = strings.Join(strings.Fields(strings.ToValidUTF8(why, "\uFFFD")), " ")
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F {
			return -1
		}
		return r
	}, why)
}
