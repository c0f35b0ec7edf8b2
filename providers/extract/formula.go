package extract

// formula writes the structure of formulas of Office documents with signs, because their parts are texts that follow each other: a
// fraction as (a)/(b), a power as a^(b). It has the depth of what is open.
type formula struct {
	depth  int // of formulas
	rows   int // of matrices
	sign   string
	fences []fence
}

// fence is a pair of brackets, of which the first is written before what they enclose.
type fence struct {
	begin, end string
	begun      bool
}

// open returns what is written before an element.
func (f *formula) open(n node) string {
	name := n.start.Name.Local
	if name == "oMath" {
		f.depth++
	}
	if f.depth == 0 {
		return ""
	}
	last := len(f.fences) - 1
	switch name {
	case "num", "den":
		return "("
	case "sup":
		return "^("
	case "sub":
		return "_("
	case "rad":
		return "√("
	case "mr":
		f.rows++
	case "naryPr":
		f.sign = "∫"
	case "chr":
		f.sign = n.attr("val")
	case "d":
		f.fences = append(f.fences, fence{begin: "(", end: ")"})
	case "begChr":
		if last >= 0 {
			f.fences[last].begin = n.attr("val")
		}
	case "endChr":
		if last >= 0 {
			f.fences[last].end = n.attr("val")
		}
	case "e":
		if last >= 0 && !f.fences[last].begun {
			f.fences[last].begun = true
			return f.fences[last].begin
		}
	}
	return ""
}

// close returns what is written after an element.
func (f *formula) close(name string) string {
	if f.depth == 0 {
		return ""
	}
	switch name {
	case "oMath":
		if f.depth--; f.depth == 0 {
			*f = formula{}
		}
	case "num":
		return ")/"
	case "den", "sup", "sub", "rad":
		return ")"
	case "naryPr":
		return f.sign
	case "e":
		if f.rows > 0 {
			return " "
		}
	case "mr":
		f.rows--
		return "; "
	case "d":
		if last := len(f.fences) - 1; last >= 0 {
			end := f.fences[last].end
			f.fences = f.fences[:last]
			return end
		}
	}
	return ""
}
