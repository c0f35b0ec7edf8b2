package tool

import (
	"context"
	_ "embed" // the description
	"encoding/json"
	"go/constant"
	"go/token"
	"strings"
	"time"

	"turnstone/actors/tools"
)

//go:embed calculate.md
var calculateDescription string

// Calculate evaluates arithmetic on exact rationals.
type Calculate struct{}

const (
	maxExpression = 500  // characters
	maxExponent   = 1000 // of ^, so that a short input cannot make a huge number
	maxDepth      = 50   // of parentheses
	maxDecimals   = 30   // most decimals of an exact result; other results are rounded to half as many
)

// Spec implements tools.Tool.
func (Calculate) Spec() tools.Spec {
	return tools.Spec{
		Name: "calculate", Kind: "compute", Title: "Calculate", Description: calculateDescription, ReadOnly: true,
		Timeout: 5 * time.Second,
		Schema:  json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string","description":"As (12.5 + 3) * 7 ^ 2."}},"required":["expression"],"additionalProperties":false}`),
	}
}

// Run implements tools.Tool: {"expression": "…"} gives the result as a decimal number.
func (Calculate) Run(_ context.Context, call *tools.Call) (tools.Result, error) {
	var in struct {
		Expression string `json:"expression"`
	}
	if err := json.Unmarshal(call.Input, &in); err != nil || strings.TrimSpace(in.Expression) == "" {
		return tools.Result{}, &tools.Failure{Code: "invalid_input", Detail: "An expression is needed."}
	}
	if len(in.Expression) > maxExpression {
		return tools.Result{}, &tools.Failure{Code: "invalid_input", Detail: "The expression is too long."}
	}
	p := &arithmetic{rest: in.Expression}
	value, err := p.sum(0)
	if err == nil && p.peek() != 0 {
		err = p.failure("unexpected " + string(p.peek()))
	}
	if err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Output: decimal(value)}, nil
}

// arithmetic is a recursive-descent parser that evaluates while it parses.
type arithmetic struct{ rest string }

func (p *arithmetic) failure(detail string) error {
	return &tools.Failure{Code: "invalid_expression", Detail: "Cannot calculate: " + detail + "."}
}

func (p *arithmetic) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " \t\n\r")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

func (p *arithmetic) sum(depth int) (constant.Value, error) {
	left, err := p.product(depth)
	for err == nil && (p.peek() == '+' || p.peek() == '-') {
		op := map[byte]token.Token{'+': token.ADD, '-': token.SUB}[p.rest[0]]
		p.rest = p.rest[1:]
		var right constant.Value
		if right, err = p.product(depth); err == nil {
			left = constant.BinaryOp(left, op, right)
		}
	}
	return left, err
}

func (p *arithmetic) product(depth int) (constant.Value, error) {
	left, err := p.power(depth)
	for err == nil && (p.peek() == '*' || p.peek() == '/' || p.peek() == '%') {
		op := p.rest[0]
		p.rest = p.rest[1:]
		var right constant.Value
		if right, err = p.power(depth); err != nil {
			break
		}
		switch {
		case op == '*':
			left = constant.BinaryOp(left, token.MUL, right)
		case constant.Sign(right) == 0:
			return nil, p.failure("division by zero")
		case op == '/':
			left = constant.BinaryOp(left, token.QUO, right)
		default:
			l, r := constant.ToInt(left), constant.ToInt(right)
			if l.Kind() != constant.Int || r.Kind() != constant.Int {
				return nil, p.failure("% needs whole numbers")
			}
			left = constant.BinaryOp(l, token.REM, r)
		}
	}
	return left, err
}

// power binds tighter than a sign and is right-associative: -2^2 is -4, 2^3^2 is 512.
func (p *arithmetic) power(depth int) (constant.Value, error) {
	if depth > maxDepth {
		return nil, p.failure("it is nested too deeply")
	}
	if c := p.peek(); c == '-' || c == '+' {
		p.rest = p.rest[1:]
		value, err := p.power(depth + 1)
		if err != nil || c == '+' {
			return value, err
		}
		return constant.UnaryOp(token.SUB, value, 0), nil
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

func (p *arithmetic) raise(base, exponent constant.Value) (constant.Value, error) {
	n, exact := constant.Int64Val(constant.ToInt(exponent))
	if constant.ToInt(exponent).Kind() != constant.Int || !exact || n > maxExponent || n < -maxExponent {
		return nil, p.failure("the exponent has to be a whole number up to 1000")
	}
	if n < 0 && constant.Sign(base) == 0 {
		return nil, p.failure("division by zero")
	}
	if n < 0 {
		base, n = constant.BinaryOp(constant.MakeInt64(1), token.QUO, base), -n
	}
	result := constant.MakeInt64(1)
	for ; n > 0; n-- {
		if result = constant.BinaryOp(result, token.MUL, base); len(result.ExactString()) > 20_000 {
			return nil, p.failure("the number is too large")
		}
	}
	return result, nil
}

func (p *arithmetic) atom(depth int) (constant.Value, error) {
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
	value := constant.MakeFromLiteral("0"+strings.TrimSuffix(literal, "."), token.FLOAT, 0)
	if value.Kind() == constant.Unknown {
		return nil, p.failure("a number cannot be read")
	}
	return value, nil
}

// decimal formats a value: whole numbers and short finite decimals exactly, others rounded.
func decimal(value constant.Value) string {
	if whole := constant.ToInt(value); whole.Kind() == constant.Int {
		return whole.ExactString()
	}
	rational := ratOf(value)
	if digits, exact := rational.FloatPrec(); exact && digits <= maxDecimals {
		return rational.FloatString(digits)
	}
	return strings.TrimRight(rational.FloatString(maxDecimals/2), "0")
}
