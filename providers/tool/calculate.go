package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"math/big"
	"strings"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/protocol"
)

//go:embed calculate.md
var calculateDescription string

// Calculate evaluates arithmetic on exact rationals.
type Calculate struct{}

const (
	maxExpression = 500     // characters
	maxExponent   = 1000    // of ^
	maxDepth      = 50      // of parentheses, signs and powers
	maxBits       = 1 << 16 // of a number: its numerator and its denominator together, 19,000 digits
	maxDecimals   = 30      // most decimals of an exact result; other results are rounded to half as many
)

// Spec implements toolbox.Tool.
func (Calculate) Spec() toolbox.Spec {
	return toolbox.Spec{
		Name: "calculate", Kind: "compute", Title: "Calculate", Description: calculateDescription, Effect: protocol.EffectRead, Risk: protocol.RiskLow,
		Reversibility: protocol.Reversible, Repeatable: true,
		Timeout: 5 * time.Second,
		Schema:  json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string","description":"As (12.5 + 3) * 7 ^ 2."}},"required":["expression"],"additionalProperties":false}`),
	}
}

// Run implements toolbox.Tool: {"expression": "…"} gives the result as a decimal number. It stops with its context, and no
// number that it computes has more than maxBits.
func (Calculate) Run(ctx context.Context, call *toolbox.Call) (toolbox.Result, error) {
	var in struct {
		Expression string `json:"expression"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || strings.TrimSpace(in.Expression) == "" {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "An expression is needed."}
	}
	if len(in.Expression) > maxExpression {
		return toolbox.Result{}, &toolbox.Failure{Code: "invalid_input", Detail: "The expression is too long."}
	}
	p := &arithmetic{ctx: ctx, rest: in.Expression}
	value, err := p.sum(0)
	if err == nil && p.peek() != 0 {
		err = p.failure("unexpected " + string(p.peek()))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return toolbox.Result{}, err
	}
	return toolbox.Result{Output: decimal(value)}, nil
}

// arithmetic is a recursive-descent parser that evaluates while it parses.
type arithmetic struct {
	ctx  context.Context // of the call that evaluates
	rest string
}

func (p *arithmetic) failure(detail string) error {
	return &toolbox.Failure{Code: "invalid_expression", Detail: "Cannot calculate: " + detail + "."}
}

func (p *arithmetic) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *arithmetic) sum(depth int) (*big.Rat, error) {
	left, err := p.product(depth)
	for err == nil && (p.peek() == '+' || p.peek() == '-') {
		op := p.rest[0]
		p.rest = p.rest[1:]
		var right *big.Rat
		if right, err = p.product(depth); err == nil {
			left, err = p.apply(op, left, right)
		}
	}
	return left, err
}

func (p *arithmetic) product(depth int) (*big.Rat, error) {
	left, err := p.power(depth)
	for err == nil && (p.peek() == '*' || p.peek() == '/' || p.peek() == '%') {
		op := p.rest[0]
		p.rest = p.rest[1:]
		var right *big.Rat
		if right, err = p.power(depth); err == nil {
			left, err = p.apply(op, left, right)
		}
	}
	return left, err
}

// apply returns the result of an operation. The size of a result is at most the sum of the sizes of its operands, so it is
// known before it is computed.
func (p *arithmetic) apply(op byte, left, right *big.Rat) (*big.Rat, error) {
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	if bits(left)+bits(right) > maxBits {
		return nil, p.failure("the number is too large")
	}
	result := new(big.Rat)
	switch {
	case op == '+':
		return result.Add(left, right), nil
	case op == '-':
		return result.Sub(left, right), nil
	case op == '*':
		return result.Mul(left, right), nil
	case right.Sign() == 0:
		return nil, p.failure("division by zero")
	case op == '/':
		return result.Quo(left, right), nil
	case !left.IsInt() || !right.IsInt():
		return nil, p.failure("% needs whole numbers")
	}
	return result.SetInt(new(big.Int).Rem(left.Num(), right.Num())), nil
}

func bits(value *big.Rat) int { return value.Num().BitLen() + value.Denom().BitLen() }

// power binds tighter than a sign and is right-associative: -2^2 is -4, 2^3^2 is 512.
func (p *arithmetic) power(depth int) (*big.Rat, error) {
	if depth > maxDepth {
		return nil, p.failure("it is nested too deeply")
	}
	if c := p.peek(); c == '-' || c == '+' {
		p.rest = p.rest[1:]
		value, err := p.power(depth + 1)
		if err != nil || c == '+' {
			return value, err
		}
		return new(big.Rat).Neg(value), nil
	}
	base, err := p.atom(depth)
	if err != nil || p.peek() != '^' {
		return base, err
	}
	p.rest = p.rest[1:]
	exponent, err := p.power(depth + 1)
	if err != nil {
		return nil, err
	}
	return p.raise(base, exponent)
}

func (p *arithmetic) raise(base, exponent *big.Rat) (*big.Rat, error) {
	if !exponent.IsInt() || !exponent.Num().IsInt64() || exponent.Num().Int64() > maxExponent || exponent.Num().Int64() < -maxExponent {
		return nil, p.failure("the exponent has to be a whole number up to 1000")
	}
	n := exponent.Num().Int64()
	if n < 0 {
		if base.Sign() == 0 {
			return nil, p.failure("division by zero")
		}
		base, n = new(big.Rat).Inv(base), -n
	}
	result := big.NewRat(1, 1)
	for bit := int64(1) << 10; bit > 0; bit >>= 1 { // 1 << 10 is more than maxExponent
		var err error
		if result, err = p.apply('*', result, result); err != nil {
			return nil, err
		}
		if n&bit == 0 {
			continue
		}
		if result, err = p.apply('*', result, base); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (p *arithmetic) atom(depth int) (*big.Rat, error) {
	if p.peek() == '(' {
		p.rest = p.rest[1:]
		value, err := p.sum(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, p.failure("a parenthesis is missing")
		}
		p.rest = p.rest[1:]
		return value, nil
	}
	p.peek()
	end := 0
	for end < len(p.rest) && (p.rest[end] >= '0' && p.rest[end] <= '9' || p.rest[end] == '.') {
		end++
	}
	literal := p.rest[:end]
	if literal == "" || strings.Count(literal, ".") > 1 || literal == "." {
		return nil, p.failure("a number is missing")
	}
	p.rest = p.rest[end:]
	value, ok := new(big.Rat).SetString("0" + strings.TrimSuffix(literal, "."))
	if !ok {
		return nil, p.failure("a number cannot be read")
	}
	return value, nil
}

// decimal formats a value: whole numbers and short finite decimals exactly, others rounded.
func decimal(value *big.Rat) string {
	if value.IsInt() {
		return value.Num().String()
	}
	if digits, exact := value.FloatPrec(); exact && digits <= maxDecimals {
		return value.FloatString(digits)
	}
	return strings.TrimSuffix(strings.TrimRight(value.FloatString(maxDecimals/2), "0"), ".")
}
