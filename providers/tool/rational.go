package tool

import (
	"go/constant"
	"math/big"
)

// ratOf converts a value to a fraction.
func ratOf(value constant.Value) *big.Rat {
	switch v := constant.Val(constant.ToFloat(value)).(type) {
	case *big.Rat:
		return v
	case *big.Float: // the form of very large or small numbers, which is not exact
		r, _ := v.Rat(nil)
		return r
	case int64:
		return new(big.Rat).SetInt64(v)
	case *big.Int:
		return new(big.Rat).SetInt(v)
	}
	return new(big.Rat)
}
