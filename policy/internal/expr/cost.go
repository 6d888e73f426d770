package expr

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

const (
	// MaxCost is the most steps that an expression may take, by its estimate and at run time.
	MaxCost = 50_000
	// MaxValue is the longest text, in bytes, that an expression reads of a request, and the longest that it yields. It is
	// what common servers accept as one header. Longer is an error at run time.
	MaxValue = 8192
	// maxWord is the same for methods, hosts and addresses.
	maxWord = 256
	// trackedCost is the estimate from which on the steps are counted at run time too, where there are loops or growing texts.
	// Below it, and without them, the bounds of the inputs bound the steps, and counting takes longer than most expressions.
	trackedCost = 1000
	// maxParts is the highest limit of split.
	maxParts = 1024
)

// sizes tells the estimator how long the inputs are.
type sizes struct{ fields map[string]field }

// EstimateSize implements cost.Estimator.
func (s sizes) EstimateSize(node cost.AstNode) *cost.SizeEstimate {
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	f, ok := s.fields[path[0]]
	if !ok || f.longest == 0 || f.isMap() != (len(path) == 2) {
		return nil
	}
	return &cost.SizeEstimate{Max: uint64(f.longest)}
}

// EstimateCallCost implements cost.Estimator: calls are estimated by costModels and the library's own models.
func (s sizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate {
	return nil
}

// costModels has what the library leaves at one step, or counts by something that does not bound it.
func costModels() []cost.OverloadModel {
	models := []cost.OverloadModel{
		cost.Overload(overloads.InList, cost.EvalCost(
			cost.Mul(cost.AtLeastOneQuantity(cost.Length(cost.Arg(1))), cost.Sum(cost.Const(1), cost.StringScan(cost.Min(cost.Arg(0), cost.ArgElem(1))))))),
		cost.MemberOverload(overloads.MatchesString, cost.ManualCost(estimateMatches, trackMatches)),
		cost.MemberOverload("string_trim",
			cost.EvalCost(cost.Sum(cost.Const(1), cost.StringScan(cost.Length(cost.Target())))), cost.ResultSize(cost.AtMost(cost.Target()))),
		cost.MemberOverload("string_split_string_int",
			cost.EvalCost(cost.AllocList(cost.StringScan(cost.Sum(cost.Length(cost.Target()), cost.Const(1))), cost.Length(cost.Result()))),
			cost.ResultSize(cost.List(cost.AtMost(cost.Min(cost.Target(), cost.IntArg(1, maxParts))), cost.AtMost(cost.Target())))),
	}
	for overload, longest := range map[string]uint64{
		overloads.BoolToString: 5, overloads.IntToString: 20, overloads.UintToString: 20, overloads.DoubleToString: 24,
		overloads.TimestampToString: 35, overloads.DurationToString: 32,
	} {
		models = append(models, cost.Overload(overload, cost.EvalCost(cost.Const(4)), cost.ResultSize(cost.AtMost(cost.Const(longest)))))
	}
	for _, overload := range []string{overloads.StringToInt, overloads.StringToDouble, overloads.StringToTimestamp, overloads.StringToDuration, overloads.StringToBool} {
		models = append(models, cost.Overload(overload, cost.EvalCost(cost.Sum(cost.Const(4), cost.StringScan(cost.Arg(0))))))
	}
	return append(models, cost.Overload(overloads.StringToString, cost.EvalCost(cost.Const(1)), cost.ResultSize(cost.Arg(0))))
}

// estimateMatches takes the size of the compiled pattern, which can be far larger than its text: x{999}. It is no less than
// what trackMatches counts.
func estimateMatches(estimator cost.Estimator, target *cost.AstNode, args []cost.AstNode) *cost.CallEstimate {
	if target == nil || len(args) != 1 || args[0].Expr().Kind() != ast.LiteralKind {
		return &cost.CallEstimate{CostEstimate: cost.UnknownCostEstimate()}
	}
	pattern, _ := args[0].Expr().AsLiteral().(types.String)
	states, err := types.RegexProgramSize(string(pattern))
	if err != nil {
		return &cost.CallEstimate{CostEstimate: cost.UnknownCostEstimate()}
	}
	text := cost.EstimateSize(estimator, *target).Add(cost.FixedSizeEstimate(1))
	scan := text.MultiplyByCostFactor(cost.StringTraversalCostFactor)
	return &cost.CallEstimate{CostEstimate: scan.MultiplyByCostFactor(float64(max(states, len(pattern))) * regexFactor)}
}

// regexFactor is the part of a step that one state of a pattern costs for ten characters.
const regexFactor = 0.5

// trackMatches counts at run time by the pattern's text, since compiling it again would cost more than the match.
func trackMatches(args []ref.Val, _ ref.Val) *uint64 {
	var steps uint64 = 1
	if len(args) == 2 {
		text, _ := args[0].(types.String)
		pattern, _ := args[1].(types.String)
		steps = cost.SafeCeil(float64(len(text)+1) * cost.StringTraversalCostFactor * float64(len(pattern)) * regexFactor)
	}
	return &steps
}
