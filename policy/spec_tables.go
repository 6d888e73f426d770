package policy

import headgate "github.com/headgate-io/headgate"

var (
	textForm     = form{kind: formText}
	nameForm     = form{kind: formName}
	boolForm     = form{kind: formBoolean}
	durationForm = form{kind: formDuration}
	percentForm  = form{kind: formPercent}
	limitForm    = form{kind: formLimit}
	celForm      = form{kind: formCEL}
	timeForm     = form{kind: formTime}
	fileForm     = form{kind: formFile}
)

var documentMapping = mapping{name: "policy", doc: "The document.", fields: []fieldSpec{
	{name: "version", form: wordForm("1"), required: true, doc: "The version of the language."},
	{name: "clients", form: mappingForm(clientsMapping), doc: "Who a request comes from."},
	{name: "dimensions", form: entriesOf("dimension", mappingForm(dimensionMapping), 64), doc: "What keys and lists are built of, beside the built-in ones: ip, ip/N, route, method, path and host."},
	{name: "lists", form: entriesOf("list", mappingForm(listMapping), maxLists), doc: "Sets of addresses, or of values of a dimension."},
	{name: "allow", form: listOf(nameForm, maxLists), doc: "Lists whose members are never limited. A client can forge none of their dimensions."},
	{name: "deny", form: listOf(nameForm, maxLists), doc: "Lists whose members are answered 403 at once. They come before allow."},
	{name: "rules", form: listOf(mappingForm(ruleMapping), maxRules), doc: "The rules. All that match must pass, and nothing is charged if one denies."},
	{name: "capacity", form: entriesOf("path", textForm, 256), doc: "What parts of the service bear, by path pattern, as a rate: /pay: 2000/s. headgate check compares the rules with it."},
	{name: "response", form: mappingForm(responseMapping), doc: "What a denied client sees."},
	{name: "degradation", form: mappingForm(degradationMapping), doc: "When the levels L2 and L3 are in force."},
	{name: "overload", form: mappingForm(overloadMapping), doc: "What is done when the process is in danger."},
}}

var clientsMapping = mapping{name: "clients", doc: "Who a request comes from.", fields: []fieldSpec{
	{name: "trusted_proxies", form: listOf(textForm, maxListWords), def: "nobody", doc: "Addresses and prefixes of the proxies whose X-Forwarded-For, Forwarded and trusted headers are believed."},
	{name: "ipv6_prefix", form: form{kind: formInteger, least: 1, most: 128}, def: "64", doc: "How many bits of an IPv6 address make a client."},
}}

var dimensionMapping = mapping{name: "dimension", doc: "Where the value of a dimension comes from: exactly one of header, cookie, query, json, jwt, cel, redis and http. A value that is absent, unreadable or there twice is missing.", fields: []fieldSpec{
	{name: "header", form: textForm, doc: "The header of this name."},
	{name: "trusted", form: boolForm, def: "false", doc: "The header is believed from clients.trusted_proxies, and from nobody else. Else a client can write it itself."},
	{name: "cookie", form: textForm, doc: "The cookie of this name. A client can write it itself unless it is signed."},
	{name: "signed", form: mappingForm(signedMapping), doc: "The cookie carries a signature; without a good one it is missing."},
	{name: "query", form: textForm, doc: "The query parameter of this name."},
	{name: "json", form: textForm, doc: "The field of a JSON body, with dots between levels: user.phone. A body of up to 64 kB is read within 1 s, only for rules that need it; one that is compressed, larger, invalid or has a key twice is missing."},
	{name: "jwt", form: mappingForm(jwtMapping), doc: "A claim of a JSON Web Token whose signature has been verified."},
	{name: "cel", form: celForm, doc: "A text out of a CEL expression."},
	{name: "redis", form: mappingForm(redisMapping), doc: "A field of a hash in Redis."},
	{name: "http", form: mappingForm(httpMapping), doc: "The answer of an HTTP service."},
	{name: "fold", form: boolForm, def: "false", doc: "Spaces at the ends are cut, letters made small and Unicode composed (NFC), so that one value has one spelling."},
	{name: "cache", form: durationForm, def: "10s", doc: "How long a looked-up value is kept, 1s to 1h; for redis and http."},
	{name: "timeout", form: durationForm, def: "50ms", doc: "How long a look-up may take, 1ms to 5s; for redis and http."},
	{name: "default", form: textForm, doc: "The value where the look-up finds none or fails; for redis and http. Without it the dimension is missing."},
}}

var signedMapping = mapping{name: "signed", doc: "The signature of a cookie: VALUE.SIGNATURE, where SIGNATURE is the unpadded base64url text of HMAC-SHA256 over NAME=VALUE.", fields: []fieldSpec{
	{name: "key_file", form: fileForm, required: true, doc: "A file with the key, at least 16 bytes in one line; further lines are keys that are accepted too."},
}}

var jwtMapping = mapping{name: "jwt", doc: "A JSON Web Token. One that is expired, not valid yet, unsigned or signed by another key is missing.", fields: []fieldSpec{
	{name: "jwks_file", form: fileForm, doc: "A JSON Web Key Set with the public keys."},
	{name: "key_file", form: fileForm, doc: "A public key in PEM form, or the secret of HS256, HS384 or HS512, at least 32 bytes."},
	{name: "claim", form: textForm, required: true, doc: "The claim to take, with dots between levels: a text or a whole number."},
	{name: "algorithms", form: listOf(wordForm(jwtAlgorithms...), 16), def: "what the keys are for", doc: "The signature algorithms that are accepted. A secret needs them said."},
	{name: "issuer", form: textForm, def: "any", doc: "What iss must be."},
	{name: "audience", form: textForm, def: "any", doc: "What aud must have."},
	{name: "header", form: textForm, def: "Authorization, after Bearer", doc: "The header that holds the token."},
	{name: "cookie", form: textForm, doc: "The cookie that holds the token, in place of a header."},
	{name: "leeway", form: durationForm, def: "30s", doc: "By how much clocks may differ, at most 5m."},
}}

var jwtAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"}

var redisMapping = mapping{name: "redis", doc: "A field of a hash in the Redis of the store.", fields: []fieldSpec{
	{name: "hash", form: textForm, required: true, doc: "The key of the hash, with dimensions in braces: user:{user}. One of them missing makes this one missing."},
	{name: "field", form: textForm, required: true, doc: "The field of the hash."},
}}

var httpMapping = mapping{name: "http", doc: "An HTTP service that is asked by GET. 200 is an answer, 404 and 204 say that there is no value, anything else is a failure.", fields: []fieldSpec{
	{name: "url", form: textForm, required: true, doc: "http or https, with dimensions in braces, which are escaped: https://users.example.com/tier/{user}"},
	{name: "json", form: textForm, def: "the whole body", doc: "The field of a JSON answer, with dots between levels."},
}}

var listMapping = mapping{name: "list", doc: "A set: exactly one of cidrs, values and file.", fields: []fieldSpec{
	{name: "cidrs", form: listOf(textForm, maxListWords), doc: "Addresses and prefixes. IPv6 goes in quotes."},
	{name: "dimension", form: nameForm, doc: "The dimension that values, or the lines of the file, are values of."},
	{name: "values", form: listOf(textForm, maxListWords), doc: "Values of the dimension."},
	{name: "file", form: fileForm, doc: "A file below the policy's folder: one entry per line, # begins a comment line. It is read again when it changes."},
}}

var ruleMapping = mapping{name: "rule", doc: "A rule: match, key and limits, and what is done with a request that is over them.", fields: []fieldSpec{
	{name: "name", form: nameForm, required: true, doc: "The name, which is in answers, metrics and keys."},
	{name: "match", form: mappingForm(matchMapping), def: "every request", doc: "Which requests the rule is about."},
	{name: "when", form: celForm, doc: "A condition in CEL on the request. One that fails at run time is true."},
	{name: "key", form: listOf(textForm, maxParts), def: "one bucket for all", doc: "The dimensions that make the key. [user | ip] takes the first that is present."},
	{name: "missing", form: wordForm("shared", "skip", "deny"), def: "shared", doc: "What is done when a dimension of the key is missing: one bucket for all such requests, no limit by this rule, or 403."},
	{name: "skip", form: listOf(nameForm, maxLists), doc: "Lists whose members the rule does not apply to. A client can forge none of their dimensions."},
	{name: "limits", form: listOf(limitForm, maxLimits), required: true, doc: "The limits; all must pass."},
	{name: "cost", form: celForm, def: "1", doc: "What a request costs: request.bytes, response.bytes, or a whole number in CEL. What is known only from the response is checked before, and charged after."},
	{name: "min_cost", form: form{kind: formInteger, least: 1, most: headgate.MaxCount}, def: "1", doc: "The least cost. A cost that fails or is below is answered 400; one of a response is raised to it."},
	{name: "count_when", form: celForm, doc: "A condition in CEL on the response. The limits are checked before, and charged after only if it is true, or fails at run time."},
	{name: "overrides", form: mappingForm(overridesMapping), doc: "Limits in place of the rule's own, by the value of a dimension and by list. If several match, all of theirs apply."},
	{name: "schedule", form: listOf(mappingForm(scheduleMapping), 100), doc: "Limits in place of the rule's own for a time. Overrides are not changed."},
	{name: "warmup", form: mappingForm(warmupMapping), doc: "Lower limits for the first minutes of a rule."},
	{name: "lockout", form: mappingForm(lockoutMapping), doc: "Denials shut the key for a time."},
	{name: "on_deny", form: mappingForm(onDenyMapping), doc: "What is done with a request that the rule denies."},
	{name: "store", form: wordForm(string(Strict), string(Leased), string(Local)), def: "strict", doc: "Where the states are: in the store, in leases that are charged there ahead and spent in the process, or in each process alone."},
	{name: "on_error", form: wordForm(string(OnErrorLocal), string(OnErrorOpen), string(OnErrorClosed), string(OnErrorStale)), def: "local", doc: "What is done when the store fails: limits in the process, no limit, 503, or the last good answer, else 503."},
	{name: "layer", form: wordForm(string(LayerGlobal), string(LayerUser), string(LayerDevice)), def: "device if the key has a dimension device, global without a key, else user", doc: "The layer. L2 lifts all rules of the device layer; keys that are locked out stay shut."},
	{name: "unit_cost", form: textForm, doc: "What one allowed request costs, such as 0.05 CNY: reports say what was spent, and what denials saved."},
	{name: "priority", form: wordForm(string(Normal), string(Critical), string(Sheddable)), def: "normal", doc: "What overload sheds last and first. Of the rules that match a request and state one, the most critical counts."},
	{name: "mode", form: wordForm(string(Enforce), string(Shadow), string(Off)), def: "enforce", doc: "Whether the rule denies, only watches, or is only read."},
}}

var matchMapping = mapping{name: "match", doc: "Which requests a rule is about. All fields that are given must match.", fields: []fieldSpec{
	{name: "methods", form: listOf(wordForm(methodNames[:]...), 32), def: "any", doc: "Methods in capitals. HEAD counts as GET."},
	{name: "hosts", form: listOf(textForm, 1000), def: "any", doc: "Hosts without a port; *.example.com is every host below."},
	{name: "paths", form: listOf(textForm, 1000), def: "any", doc: "Path patterns: /orders/{id} has a parameter, /static/** is everything below."},
	{name: "headers", form: entriesOf("header", textForm, 32), def: "any", doc: "Headers and their values; \"*\" is any value."},
	{name: "ignore_case", form: boolForm, def: "false", doc: "Whether paths match in any case."},
}}

var overridesMapping = mapping{name: "overrides", doc: "Limits in place of the rule's own, by the name of a dimension and its value, or by list.", fields: []fieldSpec{
	{name: "list", form: entriesOf("list", listOf(limitForm, maxLimits), maxLists), doc: "Limits by the name of a list."},
	{name: "*", form: entriesOf("value", listOf(limitForm, maxLimits), 1000), doc: "Under the name of a dimension: limits by its value. A client can forge none, unless the limits let nothing pass."},
}}

var scheduleMapping = mapping{name: "schedule entry", doc: "Limits for a time: either daily, or from and to.", fields: []fieldSpec{
	{name: "daily", form: textForm, doc: "The time of day, from and up to: '19:50-21:00'. One that ends before it begins goes on into the next day."},
	{name: "zone", form: textForm, def: "UTC", doc: "The time zone of daily."},
	{name: "from", form: timeForm, doc: "When it begins."},
	{name: "to", form: timeForm, doc: "When it ends."},
	{name: "limits", form: listOf(limitForm, maxLimits), required: true, doc: "Limits in place of the rule's own, one for each."},
	{name: "ramp", form: durationForm, def: "at once", doc: "The limits move from the rule's own to these over this time, linearly, in steps of 1 s."},
}}

var warmupMapping = mapping{name: "warmup", doc: "Limits grow after the rule has come into force with these limits and this warm-up. When that was is kept in the store.", fields: []fieldSpec{
	{name: "from", form: percentForm, required: true, doc: "The part of the limits to begin with, 1% to 100%."},
	{name: "over", form: durationForm, required: true, doc: "How long it takes to the whole, up to 24h."},
}}

var lockoutMapping = mapping{name: "lockout", doc: "Denials shut the key. Denials while it is shut do not count and do not extend it.", fields: []fieldSpec{
	{name: "after", form: form{kind: formInteger, least: 1, most: headgate.MaxCount}, def: "1", doc: "The number of denials that shut the key."},
	{name: "within", form: durationForm, doc: "The time in which they must come, counted from the first; needed if after is more than 1."},
	{name: "for", form: durationForm, required: true, doc: "How long the key is shut. Shut again within this time after it was reopened, it is shut twice as long."},
	{name: "max", form: durationForm, def: "for", doc: "The longest time that doubling leads to; this long after a reopening it is forgotten."},
}}

var onDenyMapping = mapping{name: "on_deny", doc: "What is done with a denied request. If several rules deny, reject beats all; else the rule that asks for the longest wait decides.", fields: []fieldSpec{
	{name: "action", form: wordForm(string(Reject), string(Wait), string(Mark), string(Stale), string(Fallback), string(Challenge), string(WaitingRoom), string(Queue)), required: true,
		doc: "reject answers with a denial; wait holds the request for its turn; mark lets it pass with a signed header; stale gives the last good answer; fallback gives a ready answer. challenge, waiting_room and queue act as reject in this version."},
	{name: "max_wait", form: durationForm, def: "2s", doc: "The longest time to hold a request, 1ms to 1m; for wait."},
	{name: "max_age", form: durationForm, def: "1m", doc: "How old an answer may be, 1s to 24h; for stale."},
	{name: "public", form: boolForm, def: "false", doc: "Whether an answer may be given to another client than the one it was made for; for stale."},
	{name: "status", form: form{kind: formInteger, least: 200, most: 599}, def: "200", doc: "The status of the ready answer; for fallback."},
	{name: "content_type", form: textForm, def: "text/plain; charset=utf-8", doc: "The type of the ready answer; for fallback."},
	{name: "body", form: textForm, doc: "The ready answer; for fallback."},
	{name: "file", form: fileForm, doc: "A file with the ready answer, up to 1 MB; for fallback."},
}}

var responseMapping = mapping{name: "response", doc: "What a denied client sees.", fields: []fieldSpec{
	{name: "style", form: wordForm("problem", "envelope", "template"), def: "problem", doc: "The body: problem+json (RFC 9457), {code, message, data, timestamp}, or a page of your own."},
	{name: "template", form: fileForm, doc: "The page, an html/template file; for style template."},
	{name: "headers", form: listOf(wordForm("ietf", "x-ratelimit"), 2), def: "[ietf]", doc: "The families of rate limit headers."},
	{name: "retry_jitter", form: percentForm, def: "0%", doc: "By how much a Retry-After may be lengthened at random, so that clients do not come back all at once."},
	{name: "cors_origins", form: listOf(textForm, 100), def: "none", doc: "Origins whose pages may read a denial."},
}}

var degradationMapping = mapping{name: "degradation", doc: "When the levels L2 and L3 are in force.", fields: []fieldSpec{
	{name: "l2", form: mappingForm(l2Mapping), doc: "Lifting the device layer."},
	{name: "l3", form: mappingForm(l3Mapping), doc: "Letting only listed users pass."},
}}

var l2Mapping = mapping{name: "l2", doc: "When the device layer is lifted.", fields: []fieldSpec{
	{name: "automatic", form: boolForm, def: "false", doc: "Whether it is lifted without somebody's hand."},
	{name: "denied_devices", form: percentForm, def: "20%", doc: "The share of distinct devices denied by this layer alone, above which it is lifted; above 0%."},
	{name: "for", form: durationForm, def: "1m", doc: "The time over which devices are counted."},
	{name: "retry_after", form: durationForm, def: "10m", doc: "After what time the layer is tried again."},
}}

var l3Mapping = mapping{name: "l3", doc: "Who passes at L3.", fields: []fieldSpec{
	{name: "allow", form: listOf(nameForm, maxLists), required: true, doc: "Lists whose members pass. A client can forge none of their dimensions."},
}}

var overloadMapping = mapping{name: "overload", doc: "What is done when the process is in danger.", fields: []fieldSpec{
	{name: "cpu", form: percentForm, def: "90%", doc: "The share of its processors above which the process is overloaded; above 0%."},
	{name: "memory", form: percentForm, def: "85%", doc: "The share of its memory above which the process is overloaded; above 0%."},
	{name: "action", form: wordForm("shed", "pass"), def: "shed", doc: "shed answers 503 by priority; pass lets requests pass without asking for any limit."},
}}
