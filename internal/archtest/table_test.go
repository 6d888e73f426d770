package archtest

// root is how the table names the root package.
const root = "."

// anything stands for every package or library.
const anything = "*"

// Third-party libraries by what they are for. A path stands for all packages below it.
var (
	yaml = []string{"github.com/goccy/go-yaml"}
	cel  = []string{"cel.dev/cel-go"}
	// celBelow is what CEL itself is made of.
	celBelow = []string{"cel.dev/expr", "github.com/antlr4-go/antlr/v4", "go.yaml.in/yaml/v3", "golang.org/x/exp", "google.golang.org/genproto",
		"google.golang.org/protobuf", "golang.org/x/text"}
	maps       = []string{"github.com/puzpuzpuz/xsync/v4"}
	redis      = []string{"github.com/redis/rueidis"}
	load       = []string{"github.com/shirou/gopsutil/v4"}
	migrations = []string{"github.com/pressly/goose/v3"}
	sqlDrivers = []string{"modernc.org/sqlite", "github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql"}
	grpc       = []string{"google.golang.org/grpc", "google.golang.org/genproto", "google.golang.org/protobuf", "github.com/envoyproxy/go-control-plane"}
	cli        = []string{"github.com/spf13/cobra", "github.com/spf13/pflag"}
	terminal   = []string{"github.com/charmbracelet/lipgloss", "github.com/charmbracelet/x", "github.com/muesli/cancelreader", "golang.org/x/term"}
	gjson      = []string{"github.com/tidwall/gjson"}
	network    = []string{"golang.org/x/net"}
	lru        = []string{"github.com/hashicorp/golang-lru/v2"}
	tokens     = []string{"github.com/go-jose/go-jose/v4"}
	unicode    = []string{"golang.org/x/text"}
)

// row says what one package may import beside the standard library. What it does not name is forbidden.
type row struct {
	// pkg is the folder of the package, with "*" for one path element.
	pkg   string
	layer int
	// own are packages of this module, libs third-party ones.
	own, libs []string
	// onlyTests tells that nothing but _test.go files may import the package.
	onlyTests bool
	why       string
}

func libs(sets ...[]string) (all []string) {
	for _, s := range sets {
		all = append(all, s...)
	}
	return all
}

// table is the architecture. Test files are free to import what they like, but for siblings' unexported parts, which Go
// itself protects.
func table() []row {
	const verdict, kept = "middleware/httpverdict", "middleware/stale"
	return []row{
		{pkg: root, layer: 0, why: "the words of the library: whoever imports them must compile nothing else"},

		{pkg: "policy/internal/credential", layer: 0, libs: libs(tokens, lru, unicode), why: "values out of tokens, cookies and bodies: it verifies, remembers what was good, and knows no policy"},
		{pkg: "policy/internal/expr", layer: 0, own: []string{"policy/internal/spelling"}, libs: cel, why: "a language over an interface: it knows no policy, and only it knows CEL"},
		{pkg: "policy/internal/spelling", layer: 0, why: "how far a word is from another: what names the nearest needs nothing else"},
		{pkg: "policy/internal/lookup", layer: 0, libs: lru, why: "a cache in front of functions: it knows no policy"},

		{pkg: "internal/jsonbody", layer: 0, why: "reads bodies of requests strictly for every front that takes some; what it finds they put into words"},
		{pkg: "internal/childserver", layer: 0, why: "runs any server as a child that ends with the program; it knows a process, a port and a log, and not what the server is"},
		{pkg: "internal/redisconn", layer: 0, libs: redis, why: "connects to Redis for every store that never sends a command twice; it knows no store"},

		{pkg: "algo", layer: 1, own: []string{root}, why: "pure functions: the reference for every store"},
		{pkg: verdict, layer: 1, own: []string{root}, why: "what fronts and policies share"},
		{pkg: kept, layer: 1, own: []string{root, verdict}, why: "the answers that HTTP fronts keep; it is told by a Verdict what it may keep"},
		{pkg: "policy/internal/schedule", layer: 1, own: []string{root, "policy/internal/spelling"}, why: "pure functions of time: limits, schedules and zones"},
		{pkg: "policy", layer: 1, own: []string{root, verdict, "policy/internal/credential", "policy/internal/expr", "policy/internal/lookup", "policy/internal/schedule", "policy/internal/spelling"}, libs: yaml, why: "rules to charges; look-ups come through an interface, CEL and tokens through packages of their own"},
		{pkg: "flashsale", layer: 1, own: []string{root}, why: "the domain of a sale and its ports; drivers are adapters' business"},
		{pkg: "flashsale/engine", layer: 1, own: []string{root, "flashsale"}, why: "what can be done with a sale, on its ports: fronts call it, and which adapters stand behind is for app to say"},
		{pkg: "flashsale/paywire", layer: 1, own: []string{"flashsale"}, why: "what a sale and a payment service say to each other: both sides speak it, and which is which is theirs"},
		{pkg: "challenge", layer: 1, own: []string{root}, libs: []string{"github.com/steambap/captcha"}, why: "issues and verifies challenges"},
		{pkg: "resilience", layer: 1, own: []string{root}, libs: load, why: "wraps any Limiter; what the machine does is gopsutil's to know"},
		{pkg: "source", layer: 1, why: "where a policy's bytes come from, whatever they mean"},
		{pkg: "testlang", layer: 1, own: []string{root, verdict}, why: "drives any Limiter and, as a Decider, any policy"},
		{pkg: "replay", layer: 1, own: []string{root, verdict, "algo"}, libs: gjson, why: "drives a policy as a Decider, and measures in the windows of algo; logs in JSON are a million lines of it, of any shape"},

		{pkg: "internal/referee", layer: 1, own: []string{root}, why: "judges what limiters admit by the words of the limits, without any code that decides; the demo and tests of faults ask it"},

		{pkg: "demo/redisserver", layer: 1, own: []string{"internal/childserver"}, why: "runs a Redis of the program's own for a demonstration; it knows nothing of what is counted there"},
		{pkg: "demo/postgresserver", layer: 1, own: []string{"internal/childserver"}, why: "runs a PostgreSQL of the program's own for a demonstration; it knows nothing of what is sold there"},

		{pkg: "policy/lint", layer: 2, own: []string{root, "policy"}, why: "judges what a policy says of itself, without a store or a request"},
		{pkg: "memstore", layer: 2, own: []string{root, "algo"}, libs: maps, why: "runs algo in process"},
		{pkg: "redisstore", layer: 2, own: []string{root, "algo", "internal/redisconn"}, libs: redis, why: "runs the same in Redis"},
		{pkg: "leasestore", layer: 2, own: []string{root}, libs: maps, why: "a Limiter over any Limiter"},
		{pkg: "lookup", layer: 2, libs: redis, why: "finds values in Redis or by HTTP; a policy takes them as functions"},
		{pkg: "flashsale/redisstock", layer: 2, own: []string{root, "flashsale", "internal/redisconn"}, libs: redis, why: "an adapter knows its port and its driver"},
		{pkg: "flashsale/memstock", layer: 2, own: []string{root, "flashsale"}, libs: maps, why: "an adapter knows its port and its driver"},
		{pkg: "flashsale/sqlorders", layer: 2, own: []string{root, "flashsale"}, libs: libs(sqlDrivers, migrations), why: "an adapter knows its port and its driver"},
		{pkg: "flashsale/natsrelay", layer: 2, own: []string{root, "flashsale"}, libs: []string{"github.com/nats-io/nats.go"}, why: "an adapter knows its port and its driver"},
		{pkg: "flashsale/kafkarelay", layer: 2, own: []string{root, "flashsale"}, libs: []string{"github.com/twmb/franz-go"}, why: "an adapter knows its port and its driver"},
		{pkg: "flashsale/rocketmqrelay", layer: 2, own: []string{root, "flashsale"}, libs: []string{"github.com/apache/rocketmq-client-go/v2"}, why: "an adapter knows its port and its driver"},
		{pkg: "flashsale/httppay", layer: 2, own: []string{"flashsale", "flashsale/paywire", "internal/jsonbody"}, why: "an adapter knows its port and a protocol of plain HTTP: both ends of it"},
		{pkg: "flashsale/simpay", layer: 2, own: []string{root, "flashsale", "flashsale/paywire"}, why: "a provider of payments for tests and demonstrations, behind the same port as a real one"},
		{pkg: "flashsale/inbox", layer: 2, why: "the readers of events use it in services of their own, and compile nothing else of this module"},
		{pkg: "flashsale/waitingroom", layer: 2, own: []string{root, "flashsale"}, libs: redis, why: "an adapter knows its port and its driver"},
		{pkg: "source/filesource", layer: 2, own: []string{"source"}, why: "a source knows its SDK alone"},
		{pkg: "source/httpsource", layer: 2, own: []string{"source"}, why: "a source knows its SDK alone"},
		{pkg: "source/etcdsource", layer: 2, own: []string{"source"}, libs: []string{"go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/api/v3"}, why: "a source knows its SDK alone"},
		{pkg: "source/nacossource", layer: 2, own: []string{"source"}, libs: []string{"github.com/nacos-group/nacos-sdk-go/v2"}, why: "a source knows its SDK alone"},
		{pkg: "source/apollosource", layer: 2, own: []string{"source"}, why: "a source knows its SDK alone; Apollo's is plain HTTP"},
		{pkg: "source/redissource", layer: 2, own: []string{"source"}, libs: redis, why: "a source knows its SDK alone"},
		{pkg: "history", layer: 2, own: []string{root, "source"}, libs: libs(redis, sqlDrivers, migrations), why: "keeps versions of what sources bring"},
		{pkg: "metrics", layer: 2, own: []string{root}, libs: []string{"github.com/prometheus", "go.opentelemetry.io/otel"}, why: "observer interfaces use basic and root types only"},

		{pkg: "middleware/nethttpmw", layer: 3, own: []string{root, verdict, kept}, why: "a front knows verdicts and its framework, never a store"},
		{pkg: "middleware/ginmw", layer: 3, own: []string{root, verdict}, libs: []string{"github.com/gin-gonic/gin"}, why: "a front knows verdicts and its framework, never a store"},
		{pkg: "middleware/echomw", layer: 3, own: []string{root, verdict}, libs: []string{"github.com/labstack/echo/v4"}, why: "a front knows verdicts and its framework, never a store"},
		{pkg: "middleware/fibermw", layer: 3, own: []string{root, verdict}, libs: []string{"github.com/gofiber/fiber/v3"}, why: "a front knows verdicts and its framework, never a store"},
		{pkg: "middleware/grpcmw", layer: 3, own: []string{root, verdict}, libs: grpc, why: "a front knows verdicts and its framework, never a store"},
		{pkg: "gateway", layer: 3, own: []string{root, verdict, kept}, libs: network, why: "applies any Decider; HTTP/2 and its header checks are x/net's"},
		{pkg: "decisionapi", layer: 3, own: []string{root, "policy", verdict}, libs: yaml, why: "answers for a policy over HTTP"},
		{pkg: "rls", layer: 3, own: []string{root, "policy", verdict}, libs: grpc, why: "answers for a policy over gRPC"},
		{pkg: "resp", layer: 3, own: []string{root, "policy", verdict}, libs: []string{"github.com/tidwall/redcon"}, why: "answers over the Redis protocol"},
		{pkg: "roundtrip", layer: 3, own: []string{root}, why: "a limit around an http.RoundTripper needs a Limiter alone"},
		{pkg: "guard", layer: 3, own: []string{root}, why: "a limit around a function needs a Limiter alone"},
		{pkg: "flashsale/salehttp/page", layer: 0, why: "a script for browsers, and nothing else"},
		{pkg: "flashsale/salehttp", layer: 3, own: []string{root, "flashsale", "flashsale/engine", "flashsale/salehttp/page", verdict, "internal/jsonbody"}, why: "the sale's HTTP for shoppers; it declares Identity and app fills it"},
		{pkg: "flashsale/saleadmin", layer: 3, own: []string{root, "flashsale", "flashsale/engine", verdict, "internal/jsonbody"}, why: "the sale's HTTP for operators; it declares Actor and app fills it"},
		{pkg: "console", layer: 3, own: []string{root, "policy", "flashsale", "source", "history"}, why: "shows and changes what these hold"},

		{pkg: "app", layer: 4, own: []string{anything}, libs: []string{anything}, why: "the composition root: the only package that knows everything"},
		{pkg: "demo", layer: 4, own: []string{anything}, libs: []string{anything}, why: "composes a whole scene out of the same parts"},
		{pkg: "demo/chaos", layer: 4, own: []string{anything}, libs: []string{anything}, why: "composes a demo out of several instances and a store that is made to fail; the demo itself starts no process"},
		{pkg: "demo/demoview", layer: 4, own: []string{root, "demo"}, libs: terminal, why: "draws a demo in a terminal; the demo itself compiles no terminal library"},
		{pkg: "cmd/headgate", layer: 5, own: []string{root, verdict, "app", "demo", "demo/chaos", "demo/demoview", "demo/postgresserver", "demo/redisserver", "policy", "policy/lint", "testlang", "replay", "flashsale/saleadmin"}, libs: libs(cli, terminal, yaml), why: "flags and output, also of verdicts and of a client of the sale's operators; files of sales are YAML; what is composed is composed by app"},

		{pkg: "limitertest/oracle", layer: 1, own: []string{root}, onlyTests: true, why: "the algorithms once more, in math/big, from the description alone"},
		{pkg: "limitertest", layer: 2, own: []string{root, "testlang", "limitertest/oracle"}, libs: []string{"pgregory.net/rapid"}, onlyTests: true, why: "judges any Limiter"},
		{pkg: "middleware/mwtest", layer: 2, own: []string{root, verdict, kept}, onlyTests: true, why: "judges any front"},
		{pkg: "flashsale/stocktest", layer: 2, own: []string{root, "flashsale"}, libs: []string{"pgregory.net/rapid"}, onlyTests: true, why: "judges any stock"},
		{pkg: "flashsale/porttest", layer: 2, own: []string{root, "flashsale"}, onlyTests: true, why: "puts the ports of a sale behind a gate that a test can close"},
		{pkg: "flashsale/saletest/invariants", layer: 4, own: []string{anything}, libs: []string{anything}, onlyTests: true, why: "has tests only: of what a sale promises, on all its stores"},
		{pkg: "flashsale/saletest/model", layer: 4, own: []string{root, "flashsale", "flashsale/engine", "flashsale/memstock", "flashsale/sqlorders", "flashsale/simpay", "flashsale/porttest"}, onlyTests: true, why: "has tests only: drawn interleavings of a sale on stores in memory"},
		{pkg: "flashsale/saletest/salerig", layer: 4, own: []string{root, "flashsale", "flashsale/engine", "flashsale/memstock", "flashsale/sqlorders", "flashsale/simpay", "flashsale/porttest"}, onlyTests: true, why: "sets up a whole sale on stores in memory for the tests of its fronts, which no adapter's name is in"},
		{pkg: "flashsale/saletest", layer: 4, own: []string{anything}, libs: []string{anything}, onlyTests: true, why: "has tests only: of a whole sale on all its stores, while they fail"},
		{pkg: "flashsale/saletest/faults", layer: 4, own: []string{anything}, libs: []string{anything}, onlyTests: true, why: "has tests only: of a whole sale in processes of its own, while they and their stores die"},
		{pkg: "source/sourcetest", layer: 2, own: []string{"source"}, onlyTests: true, why: "judges any source"},
		{pkg: "internal/testservers", layer: 1, own: []string{"internal/childserver"}, onlyTests: true, why: "starts servers; a test of any package may use it"},
		{pkg: "internal/leaktest", layer: 1, libs: []string{"go.uber.org/goleak"}, onlyTests: true, why: "looks for goroutines that any package's tests have left"},
		{pkg: "internal/mutanttest", layer: 1, onlyTests: true, why: "judges suites of tests by things with a fault; it knows a test and its parts"},
		{pkg: "internal/openapitest", layer: 1, libs: []string{"github.com/getkin/kin-openapi"}, onlyTests: true, why: "holds answers to the OpenAPI document of any handler"},
		{pkg: "internal/faults", layer: 4, own: []string{anything}, libs: []string{anything}, onlyTests: true, why: "has tests only: of all parts together, while one of them fails"},
		{pkg: "internal/archtest", layer: 1, onlyTests: true, why: "has tests only"},

		{pkg: "examples/*", layer: 5, own: []string{anything}, libs: []string{anything}, why: "programs of users, who may use every package"},
	}
}

// sameLayer lists the imports within a layer, or upwards, that the table may hold, with the reason for each.
func sameLayer() map[string]string {
	const verdict = "middleware/httpverdict"
	return map[string]string{
		"policy/internal/expr → policy/internal/spelling": "the word for a name that is misspelt",
		"policy → policy/internal/schedule":               "a part of the policy, apart because it is pure",
		"policy → " + verdict:                             "a policy answers with a Verdict; httpverdict imports the root alone",
		"middleware/stale → " + verdict:                   "it keeps answers as a Verdict says",
		"testlang → " + verdict:                           "it drives policies as Deciders",
		"flashsale/engine → flashsale":                    "the domain and what is done with it; engine is no adapter, and has no driver",
		"flashsale/paywire → flashsale":                   "the domain's payments as they are written: pure functions, and no driver",
		"replay → " + verdict:                             "it drives policies as Deciders",
		"replay → algo":                                   "a day that begins at 01:00 is measured as it is counted",
	}
}

// downTwo lists the imports of layer 2 by layer 3 that the table may hold, with the reason for each.
func downTwo() map[string]string {
	return map[string]string{"console → history": "the console shows versions; history has no interface to hide behind that is not itself"}
}
