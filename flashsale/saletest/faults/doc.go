// Package faults has the tests of a whole sale while something dies: processes that run the engine on real stores are killed, stopped
// and started again, Redis is failed over, emptied or killed, the database is restarted. Shoppers go on as good clients do, and in
// the end every one of them must have had one final answer, every unit must be sold, and every payment must have bought one or be
// given back.
//
// What is drawn comes from a seed, which every test prints:
//
//	go test ./flashsale/saletest/faults -run TestKilledProcesses -faults.seed 17
//
// The same seed draws the same faults and shoppers again; how the processes come to meet is the machine's.
package faults
