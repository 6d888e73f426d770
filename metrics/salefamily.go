package metrics

// The families of a flash sale.
const (
	famReserves     family = "headgate_sale_reserves_total"
	famReserveTime  family = "headgate_sale_reserve_duration_seconds"
	famTransitions  family = "headgate_sale_transitions_total"
	famMovedUnits   family = "headgate_sale_transition_units_total"
	famRejections   family = "headgate_sale_rejections_total"
	famPayments     family = "headgate_sale_payments_total"
	famRefunds      family = "headgate_sale_refunds_total"
	famDecisionAge  family = "headgate_sale_decision_latency_seconds"
	famBatchTime    family = "headgate_sale_batch_duration_seconds"
	famBatchJobs    family = "headgate_sale_batch_jobs"
	famBatchRepeats family = "headgate_sale_batch_repeats_total"
	famQueueJobs    family = "headgate_sale_queue_jobs"
	famQueueOldest  family = "headgate_sale_queue_oldest_seconds"
	famDeadLetters  family = "headgate_sale_dead_letters"
	famPending      family = "headgate_sale_pending_reservations"
	famConsumers    family = "headgate_sale_consumers"
	famAlarm        family = "headgate_sale_alarm_active"
	famAlarms       family = "headgate_sale_alarms_total"
	famDrift        family = "headgate_sale_drift_units"
	famRebuilds     family = "headgate_sale_rebuilds_total"
	famRebuildTime  family = "headgate_sale_rebuild_duration_seconds"
	famEpoch        family = "headgate_sale_rebuilt_epoch"
	famJobPasses    family = "headgate_sale_job_passes_total"
	famJobDone      family = "headgate_sale_job_done_total"
	famJobTime      family = "headgate_sale_job_duration_seconds"
	famJobLeader    family = "headgate_sale_job_leader"
	famRefusals     family = "headgate_sale_refusals_total"
	famRefusalTries family = "headgate_sale_refusal_writes_total"
)

// Labels of several families.
const (
	labelSale   = "sale"
	labelSKU    = "sku"
	labelJob    = "job"
	labelReason = "reason"
	labelKind   = "kind"
)

func saleFamilies() []about {
	of := func(more ...string) []string { return append([]string{labelSale, labelSKU}, more...) }
	return []about{
		{famReserves, counter, "calls", of("outcome"),
			"Reserve calls of a sale: accepted, known (asked again), or the code of the refusal or error."},
		{famReserveTime, histogram, "seconds", nil,
			"Duration of reserve calls."},
		{famTransitions, counter, "transitions", of("transition"),
			"Transitions of reservations, by their names in the table of states: T1 reserved, T1' and T2 rejected, T3 pays, T3b may pay again, T4 paid, T5 cancelled, T6 and T7 expired, T8 paid late, T9 refunded."},
		{famMovedUnits, counter, "units", of("transition"),
			"Units that these transitions were about."},
		{famRejections, counter, "reservations", []string{labelReason},
			"Reservations that were rejected after they had been taken, by why."},
		{famPayments, counter, "payments", []string{"outcome"},
			"Payments: begun, captured, not_captured (void or failed), refunded."},
		{famRefunds, counter, "payments", []string{labelReason},
			"Payments that were refunded, by why."},
		{famDecisionAge, histogram, "seconds", nil,
			"Time from the acceptance of a reservation to the commit that has decided it; of all in a batch, that of the oldest."},
		{famBatchTime, histogram, "seconds", nil,
			"Duration of the transactions that decide reservations."},
		{famBatchJobs, histogram, "jobs", nil,
			"Reservations that were decided in one transaction."},
		{famBatchRepeats, counter, "tries", nil,
			"Times that a batch had to be decided again."},
		{famQueueJobs, gauge, "jobs", of("state"),
			"Jobs that are to be decided: waiting, or pulled by a consumer."},
		{famQueueOldest, gauge, "seconds", of(),
			"Age of the oldest job that is to be decided. From 45 s on the sku is busy."},
		{famDeadLetters, gauge, "jobs", of(),
			"Jobs that could not be decided."},
		{famPending, gauge, "reservations", of(),
			"Reservations that are taken and not decided, dead letters among them."},
		{famConsumers, gauge, "consumers", nil,
			"Consumers that decide jobs in this process."},
		{famAlarm, gauge, "1", of(labelKind),
			"An alarm that is on. One that is off has no series."},
		{famAlarms, counter, "alarms", []string{labelKind},
			"Times that an alarm went on."},
		{famDrift, gauge, "units", of(),
			"By how much the stock offers more (or, below 0, less) than SQL has, while the two do not agree."},
		{famRebuilds, counter, "rebuilds", []string{labelCode},
			"Rebuilds of a stock from SQL by this process, by the code of their failure (ok: none)."},
		{famRebuildTime, histogram, "seconds", nil,
			"Duration of rebuilds."},
		{famEpoch, gauge, "1", of(),
			"The epoch that this process has last rebuilt the stock of a sku to."},
		{famJobPasses, counter, "passes", []string{labelJob, labelCode},
			"Passes of the jobs that one instance does at a time, by the code of their failure (ok: none)."},
		{famJobDone, counter, "things", []string{labelJob},
			"What these jobs have done: reservations ended, rows delivered, payments gone on with."},
		{famJobTime, histogram, "seconds", []string{labelJob},
			"Duration of the passes of these jobs."},
		{famJobLeader, gauge, "0 or 1", []string{labelJob},
			"Whether this process has the lease of a job. Over all instances the sum is 1."},
		{famRefusals, counter, "refusals", []string{"outcome"},
			"Refusals of shoppers, of the sale and of the policy, that this process has written to where all read them for stories, or has dropped before that."},
		{famRefusalTries, counter, "tries", []string{labelCode},
			"Tries to write refusals there, by the code of their failure (ok: none)."},
	}
}

// driftAlarm is the kind of alarm whose value is a difference of units.
const driftAlarm = "drift"

func (v *SaleView) collect(o *sink) {
	if !v.used.Load() {
		return // there is no sale
	}
	v.collectSKUs(o)
	o.histogram(famReserveTime, v.reserving, nanoseconds)
	o.histogram(famDecisionAge, v.age, nanoseconds)
	o.histogram(famBatchTime, v.batchTime, nanoseconds)
	o.histogram(famBatchJobs, v.batchJobs, 1)
	o.histogram(famRebuildTime, v.rebuilding, nanoseconds)
	o.count(famBatchRepeats, v.repeats.n.Load(), true)
	for i, name := range payOutcomes {
		o.count(famPayments, v.payments[i].n.Load(), true, name)
	}
	o.count(famRefusals, v.refusals[refusalsWritten].n.Load(), true, "written")
	o.count(famRefusals, v.refusals[refusalsDropped].n.Load(), true, "dropped")
	rest := []string{other}
	counts(o, famRefusalTries, v.refusalTries, rest, func(code string) []string { return []string{orOK(code)} })
	counts(o, famRejections, v.rejections, rest, func(reason string) []string { return []string{orNone(reason)} })
	counts(o, famRefunds, v.refunds, rest, func(reason string) []string { return []string{orNone(reason)} })
	counts(o, famRebuilds, v.rebuilds, rest, func(code string) []string { return []string{orOK(code)} })
	o.value(famConsumers, float64(v.workers.Load()))
	v.collectAlarms(o)
	for name, j := range *v.jobs.now.Load() {
		j.collect(o, name)
	}
	if rest := v.jobs.rest; len(*rest.passes.now.Load()) > 0 {
		rest.collect(o, other)
	}
}

func (v *SaleView) collectSKUs(o *sink) {
	v.skus.each(func(key string, s *skuSeries) {
		sale, sku := saleAndSKU(key)
		counts(o, famReserves, s.reserves, []string{sale, sku, other}, func(outcome string) []string { return []string{sale, sku, orNone(outcome)} })
		for i, name := range transitions {
			o.count(famTransitions, s.moved[i].times.Load(), false, sale, sku, name)
			o.count(famMovedUnits, s.moved[i].units.Load(), false, sale, sku, name)
		}
		if key == "" || key == other {
			return // figures of several cannot be added up
		}
		if epoch := s.epoch.Load(); epoch != 0 {
			o.value(famEpoch, float64(epoch), sale, sku)
		}
		q := s.queue.Load()
		if q == nil || v.skus.since(s) > queueFor {
			return
		}
		o.value(famQueueJobs, float64(max(0, q.depth-q.pulled)), sale, sku, "waiting")
		o.value(famQueueJobs, float64(q.pulled), sale, sku, "pulled")
		o.value(famQueueOldest, q.oldest.Seconds(), sale, sku)
		o.value(famDeadLetters, float64(q.dead), sale, sku)
		o.value(famPending, float64(q.pending), sale, sku)
	})
}

func (v *SaleView) collectAlarms(o *sink) {
	for id, value := range v.alarms.now() {
		sale, sku := saleAndSKU(id.sku)
		o.value(famAlarm, 1, sale, sku, orNone(id.kind))
		if id.kind == driftAlarm {
			o.value(famDrift, value, sale, sku)
		}
	}
	counts(o, famAlarms, v.alarms.times, []string{other}, func(kind string) []string { return []string{orNone(kind)} })
}

func (j *saleJob) collect(o *sink, name string) {
	counts(o, famJobPasses, j.passes, []string{name, other}, func(code string) []string { return []string{name, orOK(code)} })
	o.count(famJobDone, j.did.n.Load(), true, name)
	o.value(famJobLeader, bit(j.leads.Load()), name)
	o.histogram(famJobTime, j.took, nanoseconds, name)
}
