package markdown

// The commands of TeX that are known. The names are those of KaTeX, with which the app renders formulas.
var (
	// letters are letters, and symbols that are spaced as letters.
	letters = map[string]string{
		"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "zeta": "ζ", "eta": "η",
		"theta": "θ", "vartheta": "ϑ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ",
		"pi": "π", "varpi": "ϖ", "rho": "ρ", "varrho": "ϱ", "sigma": "σ", "varsigma": "ς", "tau": "τ", "upsilon": "υ",
		"phi": "ϕ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ",
		"Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
		"infty": "∞", "partial": "∂", "nabla": "∇", "hbar": "ℏ", "ell": "ℓ", "Re": "ℜ", "Im": "ℑ", "wp": "℘", "aleph": "ℵ",
		"beth": "ℶ", "emptyset": "∅", "varnothing": "∅", "imath": "ı", "jmath": "ȷ", "angle": "∠", "top": "⊤", "bot": "⊥",
		"%": "%", "$": "$", "#": "#", "_": "_", "degree": "°", "dagger": "†", "ddagger": "‡", "square": "□", "Box": "□",
		"blacksquare": "■", "checkmark": "✓", "clubsuit": "♣", "diamondsuit": "♢", "heartsuit": "♡", "spadesuit": "♠",
		"prime": "′", "backslash": "∖", "AA": "Å", "S": "§", "P": "¶",
	}

	// symbols are operators, relations and punctuation.
	symbols = map[string]string{
		"pm": "±", "mp": "∓", "times": "×", "div": "÷", "cdot": "⋅", "ast": "∗", "star": "⋆", "circ": "∘", "bullet": "∙",
		"oplus": "⊕", "ominus": "⊖", "otimes": "⊗", "odot": "⊙", "wedge": "∧", "land": "∧", "vee": "∨", "lor": "∨",
		"cap": "∩", "cup": "∪", "sqcap": "⊓", "sqcup": "⊔", "setminus": "∖", "smallsetminus": "∖", "amalg": "⨿",
		"leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "leqslant": "⩽", "geqslant": "⩾", "ll": "≪", "gg": "≫", "lt": "<",
		"gt": ">", "neq": "≠", "ne": "≠", "equiv": "≡", "sim": "∼", "simeq": "≃", "approx": "≈", "cong": "≅",
		"propto": "∝", "asymp": "≍", "doteq": "≐", "prec": "≺", "succ": "≻", "preceq": "⪯", "succeq": "⪰", "subset": "⊂",
		"supset": "⊃", "subseteq": "⊆", "supseteq": "⊇", "subsetneq": "⊊", "supsetneq": "⊋", "in": "∈", "ni": "∋",
		"notin": "∉", "mid": "∣", "nmid": "∤", "parallel": "∥", "perp": "⟂", "vdash": "⊢", "dashv": "⊣", "models": "⊨",
		"vDash": "⊨", "forall": "∀", "exists": "∃", "nexists": "∄", "neg": "¬", "lnot": "¬", "to": "→", "rightarrow": "→",
		"gets": "←", "leftarrow": "←", "leftrightarrow": "↔", "Rightarrow": "⇒", "Leftarrow": "⇐", "Leftrightarrow": "⇔",
		"implies": "⟹", "impliedby": "⟸", "iff": "⟺", "longrightarrow": "⟶", "longleftarrow": "⟵",
		"longleftrightarrow": "⟷", "Longrightarrow": "⟹", "Longleftarrow": "⟸", "Longleftrightarrow": "⟺", "mapsto": "↦",
		"longmapsto": "⟼", "hookrightarrow": "↪", "hookleftarrow": "↩", "uparrow": "↑", "downarrow": "↓",
		"updownarrow": "↕", "Uparrow": "⇑", "Downarrow": "⇓", "nearrow": "↗", "searrow": "↘", "swarrow": "↙",
		"nwarrow": "↖", "rightharpoonup": "⇀", "leftharpoonup": "↼", "rightleftharpoons": "⇌", "leadsto": "⇝", "dots": "…",
		"ldots": "…", "dotsc": "…", "dotsb": "⋯", "cdots": "⋯", "vdots": "⋮", "ddots": "⋱", "therefore": "∴",
		"because": "∵", "colon": ":", "coloneqq": "≔", "triangle": "△", "triangleq": "≜", "bowtie": "⋈", "diamond": "⋄",
		"lhd": "⊲", "rhd": "⊳", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
		"lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖", "|": "‖", "{": "{", "}": "}",
		"lbrace": "{", "rbrace": "}", "lbrack": "[", "rbrack": "]", "&": "&", "surd": "√",
	}

	// bigOperators have their limits above and below them in a displayed formula, except integrals.
	bigOperators = map[string]string{
		"sum": "∑", "prod": "∏", "coprod": "∐", "int": "∫", "iint": "∬", "iiint": "∭", "oint": "∮", "bigcup": "⋃",
		"bigcap": "⋂", "bigoplus": "⨁", "bigotimes": "⨂", "bigvee": "⋁", "bigwedge": "⋀", "bigsqcup": "⨆", "biguplus": "⨄",
	}

	// accents are above an argument.
	accents = map[string]string{
		"hat": "^", "widehat": "^", "check": "ˇ", "tilde": "~", "widetilde": "~", "bar": "‾", "overline": "‾", "vec": "→",
		"overrightarrow": "→", "overleftarrow": "←", "overleftrightarrow": "↔", "dot": "˙", "ddot": "¨", "acute": "´",
		"grave": "`", "breve": "˘", "mathring": "˚", "overbrace": "⏞",
	}

	// accentsBelow are below an argument.
	accentsBelow = map[string]string{
		"underline": "_", "underbrace": "⏟", "underbar": "_",
	}

	// delimiters are the commands that can follow left and right.
	delimiters = map[string]string{
		"{": "{", "}": "}", "lbrace": "{", "rbrace": "}", "langle": "⟨", "rangle": "⟩", "lfloor": "⌊", "rfloor": "⌋",
		"lceil": "⌈", "rceil": "⌉", "lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖",
		"|": "‖", "lbrack": "[", "rbrack": "]", "backslash": "∖", "uparrow": "↑", "downarrow": "↓", "lgroup": "⟮",
		"rgroup": "⟯",
	}

	// spaces are widths.
	spaces = map[string]string{
		",": "0.17em", ":": "0.22em", ">": "0.22em", ";": "0.28em", "!": "-0.17em", " ": "0.33em", "quad": "1em",
		"qquad": "2em", "enspace": "0.5em", "thinspace": "0.17em", "medspace": "0.22em", "thickspace": "0.28em",
	}

	// delimiterSizes are the sizes of delimiters.
	delimiterSizes = map[string]string{
		"big": "1.2em", "bigl": "1.2em", "bigr": "1.2em", "bigm": "1.2em", "Big": "1.8em", "Bigl": "1.8em",
		"Bigr": "1.8em", "Bigm": "1.8em", "bigg": "2.4em", "biggl": "2.4em", "biggr": "2.4em", "biggm": "2.4em",
		"Bigg": "3em", "Biggl": "3em", "Biggr": "3em", "Biggm": "3em",
	}

	// alphabets are the styles of letters.
	alphabets = map[string]string{
		"mathrm": "normal", "mathnormal": "italic", "mathit": "italic", "rm": "normal", "mathbf": "bold", "bf": "bold",
		"boldsymbol": "bold-italic", "bm": "bold-italic", "mathbb": "double-struck",
		"Bbb": "double-struck", "mathcal": "script", "mathscr": "script", "mathfrak": "fraktur", "mathsf": "sans-serif",
		"mathtt": "monospace",
	}

	// namedOperators are the functions whose names have a space.
	namedOperators = map[string]string{
		"liminf": "lim inf", "limsup": "lim sup", "argmax": "arg max", "argmin": "arg min",
	}

	// functions are upright names. true: their limits are below them in a displayed formula.
	functions = map[string]bool{
		"arccos": false, "arcsin": false, "arctan": false, "arg": false, "cos": false, "cosh": false, "cot": false, "coth": false, "csc": false, "deg": false,
		"dim": false, "exp": false, "hom": false, "ker": false, "lg": false, "ln": false, "log": false, "sec": false,
		"sin": false, "sinh": false, "tan": false, "tanh": false,
		"det": true, "gcd": true, "inf": true, "lim": true, "liminf": true, "limsup": true, "max": true, "min": true, "Pr": true, "sup": true, "argmax": true, "argmin": true,
	}

	// alphabetStarts are the first capital letter, digit and small Greek letter of the alphabets; 0: the alphabet has none.
	alphabetStarts = map[string][3]rune{
		"bold": {'𝐀', '𝟎', '𝛂'}, "bold-italic": {'𝑨', '𝟎', '𝜶'}, "double-struck": {'𝔸', '𝟘', 0}, "script": {'𝒜', 0, 0},
		"fraktur": {'𝔄', 0, 0}, "sans-serif": {'𝖠', '𝟢', 0}, "monospace": {'𝙰', '𝟶', 0},
	}

	// exceptions are the letters that Unicode had before it had the alphabets.
	exceptions = map[string]map[rune]rune{
		"double-struck": {'C': 'ℂ', 'H': 'ℍ', 'N': 'ℕ', 'P': 'ℙ', 'Q': 'ℚ', 'R': 'ℝ', 'Z': 'ℤ'},
		"script":        {'B': 'ℬ', 'E': 'ℰ', 'F': 'ℱ', 'H': 'ℋ', 'I': 'ℐ', 'L': 'ℒ', 'M': 'ℳ', 'R': 'ℛ', 'e': 'ℯ', 'g': 'ℊ', 'o': 'ℴ'},
		"fraktur":       {'C': 'ℭ', 'H': 'ℌ', 'I': 'ℑ', 'R': 'ℜ', 'Z': 'ℨ'},
	}

	// environments are tables with their delimiters, and the class by which a page aligns their cells.
	environments = map[string]layout{
		"matrix": {}, "smallmatrix": {}, "pmatrix": {"(", ")", ""}, "bmatrix": {"[", "]", ""}, "Bmatrix": {"{", "}", ""},
		"vmatrix": {"|", "|", ""}, "Vmatrix": {"‖", "‖", ""}, "array": {}, "cases": {"{", "", "left"}, "dcases": {"{", "", "left"}, "rcases": {"", "}", "left"},
		"aligned": {align: "aligned"}, "align": {align: "aligned"}, "alignat": {align: "aligned"}, "alignedat": {align: "aligned"},
		"split": {align: "aligned"}, "eqnarray": {align: "aligned"}, "gather": {}, "gathered": {}, "equation": {}, "multline": {},
	}
)

type layout struct{ open, closing, align string }
