package evidence

import "strings"

// The lists below, as words are compared: from an entry to the name of its list.
var (
	units       = namesOf(unitLists)
	scales      = powersOf(scaleLists)
	numberWords = namesOf(numberLists)
	months      = namesOf(monthLists)
)

// unitLists are the names of each unit. Symbols and the units of East Asian languages follow.
var unitLists = map[string]string{
	"%":         "percent|prozent|pct|percentage|pourcent|por ciento|porciento|процент|процента|процентов|процентах|प्रतिशत|फीसदी|بالمئة|بالمائة",
	"km":        "km|kilometer|kilometers|kilometre|kilometres|kilometern|kilomètres|kilomètre|kilómetros|kilómetro|км|километров|километра|километр|كيلومتر|كيلومترا|كم|किलोमीटर|किमी",
	"m":         "m|meter|meters|metre|metres|metern|mètres|mètre|metros|metro|м|метров|метра|метр|متر|مترا|امتار|मीटर",
	"cm":        "cm|centimeter|centimeters|centimetre|centimetres|zentimeter|centimètres|centímetros|см|сантиметров|سم|सेमी",
	"mm":        "mm|millimeter|millimeters|millimetre|millimetres|millimètres|milímetros|мм|миллиметров",
	"mile":      "mile|miles|mi|meilen|meile|milles|millas|миль",
	"ft":        "ft|foot|feet|fuß|pieds|pies|футов",
	"kg":        "kg|kilogram|kilograms|kilogramm|kilo|kilos|kilogrammes|kilogramos|кг|килограммов|килограмм|كيلوغرام|किलोग्राम|किलो",
	"g":         "g|gram|grams|gramm|grammes|gramos|граммов|غرام|ग्राम",
	"t":         "tonne|tonnes|ton|tons|tonnen|toneladas|тонн|тонны|т|طن|طنا|टन",
	"l":         "liter|liters|litre|litres|litern|litros|литров|لتر|लीटर",
	"second":    "second|seconds|sekunden|sekunde|secondes|segundos|секунд|секунды|ثانية|सेकंड",
	"minute":    "minute|minutes|minuten|minutos|минут|минуты|دقيقة|मिनट",
	"hour":      "hour|hours|stunden|stunde|heures|heure|horas|hora|часов|часа|час|ساعة|ساعات|घंटे|घंटा",
	"day":       "day|days|tage|tagen|tag|jours|jour|días|día|дней|дня|день|يوم|يوما|ايام|दिन|दिनों",
	"week":      "week|weeks|wochen|woche|semaines|semaine|semanas|semana|недель|недели|اسبوع|اسابيع|सप्ताह|हफ्ते",
	"month":     "month|months|monate|monaten|monat|mois|meses|mes|месяцев|месяца|شهر|شهرا|اشهر|महीने|महीनों",
	"year":      "year|years|jahre|jahren|ans|années|année|años|año|лет|года|سنوات|سنة|عاما|वर्ष|साल|वर्षों",
	"degree":    "degree|degrees|grad|degrés|grados|градусов|градуса|درجة|درجات|डिग्री|celsius",
	"dollar":    "dollar|dollars|usd|dólares|dólar|долларов|доллара|دولار|डॉलर",
	"euro":      "euro|euros|eur|евро|يورو|यूरो",
	"pound":     "pound|pounds|gbp|pfund|livres|libras|фунтов",
	"yen":       "yen|jpy|yens|yenes|иен",
	"yuan":      "yuan|rmb|cny|юаней|يوان|युआन",
	"rupee":     "rupee|rupees|inr|rupien|roupies|rupias|रुपये|रुपए",
	"ruble":     "ruble|rubles|rouble|roubles|rubel|rub|рублей|рубля|руб",
	"watt":      "w|watt|watts|вт|ватт",
	"kilowatt":  "kw|kilowatt|kilowatts|квт",
	"megawatt":  "mw|megawatt|megawatts|mégawatts|megavatios|мвт|мегаватт|ميغاواط|मेगावाट",
	"gigawatt":  "gw|gigawatt|gigawatts|gigavatios|гвт|гигаватт|غيغاواط|गीगावाट",
	"kwh":       "kwh|kilowattstunden|квтч",
	"twh":       "twh|terawattstunden",
	"megabyte":  "mb|megabyte|megabytes|мб",
	"gigabyte":  "gb|gigabyte|gigabytes|гб",
	"terabyte":  "tb|terabyte|terabytes|тб",
	"hectare":   "ha|hectare|hectares|hektar|hectáreas|гектаров|гектара|هكتار|हेक्टेयर",
	"people":    "people|persons|inhabitants|residents|einwohner|einwohnern|menschen|personen|habitants|personnes|habitantes|personas|человек|жителей|نسمة|شخص|लोग|लोगों",
	"bpm":       "bpm",
	"hertz":     "hz|hertz|герц",
	"megahertz": "mhz|megahertz|мгц",
	"gigahertz": "ghz|gigahertz|ггц",
}

// eastUnits are units that follow a number without a space. Longer ones come first.
var eastUnits = []struct{ text, unit string }{
	{"平方公里", "km2"},
	{"平方キロメートル", "km2"},
	{"平方キロ", "km2"},
	{"平方米", "m2"},
	{"平方メートル", "m2"},
	{"キロメートル", "km"},
	{"公里", "km"},
	{"千米", "km"},
	{"キロ", "km"},
	{"킬로미터", "km"},
	{"センチメートル", "cm"},
	{"厘米", "cm"},
	{"メートル", "m"},
	{"미터", "m"},
	{"米ドル", "dollar"},
	{"美元", "dollar"},
	{"ドル", "dollar"},
	{"달러", "dollar"},
	{"米", "m"},
	{"欧元", "euro"},
	{"ユーロ", "euro"},
	{"유로", "euro"},
	{"人民币", "yuan"},
	{"日元", "yen"},
	{"円", "yen"},
	{"元", "yuan"},
	{"엔", "yen"},
	{"원", "won"},
	{"公斤", "kg"},
	{"千克", "kg"},
	{"キログラム", "kg"},
	{"吨", "t"},
	{"トン", "t"},
	{"톤", "t"},
	{"パーセント", "%"},
	{"퍼센트", "%"},
	{"％", "%"},
	{"個月", "month"},
	{"个月", "month"},
	{"か月", "month"},
	{"ヶ月", "month"},
	{"カ月", "month"},
	{"개월", "month"},
	{"小时", "hour"},
	{"小時", "hour"},
	{"時間", "hour"},
	{"시간", "hour"},
	{"分钟", "minute"},
	{"分間", "minute"},
	{"周", "week"},
	{"週間", "week"},
	{"日間", "day"},
	{"天", "day"},
	{"日", "day"},
	{"일", "day"},
	{"年間", "year"},
	{"年", "year"},
	{"년", "year"},
	{"月", "month of the year"},
	{"월", "month of the year"},
	{"万人", "people"},
	{"人", "people"},
	{"名", "people"},
	{"명", "people"},
	{"度", "degree"},
	{"도", "degree"},
	{"兆瓦", "megawatt"},
	{"吉瓦", "gigawatt"},
	{"公顷", "hectare"},
	{"ヘクタール", "hectare"},
}

// symbols are units that are no words. Currencies also precede a number.
var (
	symbols    = map[rune]string{'%': "%", '٪': "%", '％': "%", '‰': "‰", '°': "degree", '℃': "degree", '$': "dollar", '€': "euro", '£': "pound", '¥': "yen", '￥': "yen", '₹': "rupee", '₽': "ruble"}
	currencies = "$€£¥￥₹₽"
)

// scaleLists are the words after a number by the power of ten that they multiply it by. Where the languages differ, longScales has the
// values of the long scale.
var (
	scaleLists = map[int]string{
		2:  "hundred|hundert|cent|cientos|сотен|सौ",
		3:  "thousand|thousands|k|tausend|tsd|mille|mil|тыс|тысяч|тысячи|тысяча|الف|الاف|हजार|हज़ार",
		5:  "lakh|lakhs|लाख",
		6:  "million|millions|mio|mn|mln|millionen|millón|millones|milhão|milhões|milioni|milione|млн|миллион|миллиона|миллионов|مليون|ملايين|मिलियन",
		7:  "crore|crores|करोड़",
		9:  "billion|billions|bn|milliarde|milliarden|mrd|milliard|milliards|miliardi|миллиард|миллиарда|миллиардов|млрд|مليار|مليارات|अरब|बिलियन",
		12: "trillion|trillions|billón|billones|billionen|трлн|триллион|триллиона|триллионов|تريليون|ट्रिलियन",
	}
	longScales = map[string]int{"billion": 12, "billions": 12, "trillion": 18, "trillions": 18, "trillionen": 18}
	eastScales = map[rune]int{'十': 1, '百': 2, '千': 3, '천': 3, '万': 4, '萬': 4, '만': 4, '億': 8, '亿': 8, '억': 8, '兆': 12, '조': 12}
)

// numberLists are small numbers that are written in words, where a word is nothing else.
var numberLists = map[string]string{
	"2": "two|zwei|deux|dos|два|две|اثنان", "3": "three|drei|trois|tres|три|ثلاثة|ثلاث|तीन", "4": "four|vier|quatre|cuatro|четыре|اربعة|اربع|चार", "5": "five|fünf|cinq|cinco|пять|خمسة|خمس|पाँच|पांच",
	"6": "six|sechs|seis|шесть|ستة|छह", "7": "seven|sieben|sept|siete|семь|سبعة|सात", "8": "eight|acht|huit|ocho|восемь|ثمانية|आठ", "9": "nine|neun|nueve|девять|تسعة|नौ",
	"10": "ten|zehn|dix|diez|десять|عشرة|दस",
	"11": "eleven|elf|onze|одиннадцать", "12": "twelve|zwölf|douze|doce|двенадцать|बारह", "13": "thirteen|dreizehn|treize|trece",
	"14": "fourteen|vierzehn|quatorze|catorce", "15": "fifteen|fünfzehn|quinze|quince", "16": "sixteen|sechzehn", "17": "seventeen|siebzehn",
	"18": "eighteen|achtzehn", "19": "nineteen|neunzehn",
	"20": "twenty|zwanzig|vingt|veinte|двадцать|बीस", "30": "thirty|dreißig|trente|treinta|тридцать", "40": "forty|vierzig|quarante|cuarenta|сорок",
	"50": "fifty|fünfzig|cinquante|cincuenta|пятьдесят|पचास", "60": "sixty|sechzig|soixante|sesenta", "70": "seventy|siebzig|setenta", "80": "eighty|achtzig|ochenta",
	"90": "ninety|neunzig|noventa",
}

// monthLists are the names of the months. ambiguousMonths are other words too, unless a number is next to them.
var (
	monthLists = map[string]string{
		"1": "january|jan|januar|jänner|janvier|janv|enero|janeiro|gennaio|января|январе|январь|يناير|जनवरी",
		"2": "february|feb|februar|février|févr|febrero|fevereiro|febbraio|февраля|феврале|февраль|فبراير|फरवरी",
		"3": "march|mar|märz|mars|marzo|março|марта|марте|март|مارس|मार्च", "4": "april|apr|avril|avr|abril|aprile|апреля|апреле|апрель|ابريل|अप्रैल",
		"5": "may|mai|mayo|maio|maggio|мая|мае|май|مايو|मई",
		"6": "june|jun|juni|juin|junio|junho|giugno|июня|июне|июнь|يونيو|जून", "7": "july|jul|juli|juillet|juil|julio|julho|luglio|июля|июле|июль|يوليو|जुलाई",
		"8":  "august|aug|août|agosto|августа|августе|август|اغسطس|अगस्त",
		"9":  "september|sep|sept|septembre|septiembre|setembro|settembre|сентября|сентябре|сентябрь|سبتمبر|सितंबर|सितम्बर",
		"10": "october|oct|oktober|okt|octobre|octubre|outubro|ottobre|октября|октябре|октябрь|اكتوبر|अक्टूबर",
		"11": "november|nov|novembre|noviembre|novembro|ноября|ноябре|ноябрь|نوفمبر|नवंबर|नवम्बर",
		"12": "december|dec|dezember|dez|décembre|déc|diciembre|dezembro|dicembre|декабря|декабре|декабрь|ديسمبر|दिसंबर|दिसम्बर",
	}
	ambiguousMonths = foldedSet("may|mai|march|mars|mar|jan|jun|jul|sep|sept|oct|nov|dec|dez|okt|avr|apr|aug|feb|май|мае|мая|марте")
)

// namesOf maps the entries of lists to the names of the lists.
func namesOf(lists map[string]string) map[string]string {
	all := map[string]string{}
	for name, list := range lists {
		for entry := range foldedSet(list) {
			all[entry] = name
		}
	}
	return all
}

func powersOf(lists map[int]string) map[string]int {
	all := map[string]int{}
	for power, list := range lists {
		for entry := range foldedSet(list) {
			all[entry] = power
		}
	}
	return all
}

// eastUnit returns the unit at the beginning of a text, and its length.
func eastUnit(text string) (unit string, n int) {
	for _, u := range eastUnits {
		if strings.HasPrefix(text, u.text) {
			return u.unit, len(u.text)
		}
	}
	return "", 0
}
