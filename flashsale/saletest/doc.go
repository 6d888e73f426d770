// Package saletest has tests only: of a whole sale on all its stores, while everything fails that can.
//
// The model test (model_test.go) runs engines on stores in memory, one step at a time: a step is one call of a port, and who makes the
// next one is drawn. Between any two steps an engine may crash, a call may fail before or after it has run, clocks may be set, the
// Stock may lose its last writes. The seed is the whole of a run.
//
// The others run the same engine on real servers, and kill those, and processes with the engine in them.
package saletest
