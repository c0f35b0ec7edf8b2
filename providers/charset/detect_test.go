package charset_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"turnstone/providers/charset"
)

// texts are a table of a few words, and sentences, in encodings that people use.
var texts = []struct {
	name       string
	of         encoding.Encoding
	few, many  string
	fewAreHard bool // a few words of Latin script are the same bytes in several encodings
}{
	{"Shift-JIS", japanese.ShiftJIS, "名前,住所\n山田太郎,東京都", "お世話になっております。来週の会議の資料をお送りします。ご確認をよろしくお願いいたします。場所は東京本社の三階です。", false},
	{"EUC-JP", japanese.EUCJP, "名前,住所\n山田太郎,東京都", "お世話になっております。来週の会議の資料をお送りします。ご確認をよろしくお願いいたします。場所は東京本社の三階です。", false},
	{"GB18030", simplifiedchinese.GB18030, "姓名,地址\n张三,北京市", "各位同事：请在下周五之前提交季度报告。会议将在北京总部三楼举行，请准时参加。谢谢大家的配合。", false},
	{"Big5", traditionalchinese.Big5, "姓名,地址\n陳小明,台北市", "各位同事：請在下週五之前提交季度報告。會議將在台北總部三樓舉行，請準時參加。謝謝大家的配合。", false},
	{"EUC-KR", korean.EUCKR, "이름,주소\n홍길동,서울시", "안녕하세요. 다음 주 회의 자료를 보내 드립니다. 확인 부탁드립니다. 회의 장소는 서울 본사 삼층입니다.", false},
	{"Windows-1251", charmap.Windows1251, "Имя;Город\nИван Петров;Москва", "Уважаемые коллеги! Просим вас до пятницы сдать квартальный отчёт. Совещание состоится на третьем этаже главного офиса в Москве.", false},
	{"Windows-1251, Ukrainian", charmap.Windows1251, "Ім’я;Місто\nІван Франко;Київ", "Шановні колеги! Просимо до п’ятниці здати квартальний звіт. Нарада відбудеться на третьому поверсі головного офісу в Києві.", false},
	{"KOI8-R", charmap.KOI8R, "Имя;Город\nИван Петров;Москва", "Уважаемые коллеги! Просим вас до пятницы сдать квартальный отчёт. Совещание состоится на третьем этаже главного офиса в Москве.", false},
	{"Windows-1253", charmap.Windows1253, "Όνομα;Πόλη\nΓιώργος;Αθήνα", "Αγαπητοί συνάδελφοι, παρακαλούμε να υποβάλετε την τριμηνιαία έκθεση έως την Παρασκευή. Η συνάντηση θα γίνει στον τρίτο όροφο.", false},
	{"ISO-8859-2", charmap.ISO8859_2, "Imię;Miasto\nŁukasz Żółw;Łódź", "Szanowni Państwo, prosimy o złożenie sprawozdania kwartalnego do piątku. Spotkanie odbędzie się na trzecim piętrze głównego biura w Łodzi. Zażółć gęślą jaźń.", false},
	{"Windows-1250", charmap.Windows1250, "Jméno;Město\nŽižka;Plzeň", "Vážení kolegové, prosíme o odevzdání čtvrtletní zprávy do pátku. Schůzka se koná ve třetím patře hlavní budovy v Praze. Šťastný žluťoučký kůň.", true},
	{"Windows-1252", charmap.Windows1252, "Prénom;Âge\nÉlève;12", "Chers collègues, merci d’envoyer le rapport trimestriel avant vendredi. La réunion aura lieu à l’étage, près du café. Où êtes-vous né ?", false},
	{"Windows-1252, German", charmap.Windows1252, "Café;Müller", "Sehr geehrte Kolleginnen und Kollegen, bitte reichen Sie den Bericht bis Freitag ein. Größe, Übung, Straße – „danke“.", false},
	{"Windows-1254", charmap.Windows1254, "Adı;Şehir\nIşıl Çağlar;İzmir", "Değerli meslektaşlarım, lütfen üç aylık raporu cuma gününe kadar teslim ediniz. Toplantı üçüncü katta yapılacaktır.", false},
	{"Windows-1256", charmap.Windows1256, "الاسم;المدينة", "السادة الزملاء، يرجى تقديم التقرير الربع سنوي قبل يوم الجمعة. سيعقد الاجتماع في الطابق الثالث من المقر الرئيسي.", false},
	{"Windows-1255", charmap.Windows1255, "שם;עיר\nדוד לוי;חיפה", "עמיתים יקרים, נא להגיש את הדוח הרבעוני עד יום שישי. הפגישה תתקיים בקומה השלישית.", true},
	{"IBM866", charmap.CodePage866, "Имя;Город\nИван Петров;Москва", "Уважаемые коллеги! Просим вас до пятницы сдать квартальный отчёт. Совещание состоится на третьем этаже главного офиса в Москве.", false},
	{"Windows-874", charmap.Windows874, "ชื่อ;เมือง\nสมชาย;กรุงเทพ", "กรุณาส่งรายงานประจำไตรมาสก่อนวันศุกร์ การประชุมจะจัดขึ้นที่ชั้นสามของสำนักงานใหญ่", false},
	{"ISO-2022-JP", japanese.ISO2022JP, "名前,住所", "お世話になっております。来週の会議の資料をお送りします。", false},
	{"UTF-16, Chinese", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "姓名,地址\n张三,北京市", "各位同事：请在下周五之前提交季度报告。\n", false},
	{"UTF-16, Japanese without spaces", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "おはようございます", "お世話になっております。来週の会議の資料をお送りします。", false},
	{"UTF-16, Russian, big-endian", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "Иван;Москва", "Уважаемые коллеги! Просим вас до пятницы сдать", false},
	{"UTF-16, English", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "Tides", "Tides come and go twice a day.", false},
	{"UTF-16 with a mark", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "潮汐", "各位同事：请在下周五之前提交季度报告。", false},
	{"UTF-32 with a mark", utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "潮汐", "各位同事", false},
	{"UTF-8", encoding.Nop, "Prénom;Âge", "各位同事：请在下周五之前提交季度报告。", false},
	{"UTF-8 with a mark", unicode.UTF8BOM, "é", "各位同事", false},
}

func TestAWordOfLatinScriptHasNoDigitsOfAnother(t *testing.T) {
	if got := charset.Detect([]byte("Gr\xf6\xdfe")); got.Decode([]byte("Gr\xf6\xdfe")) != "Größe" {
		t.Errorf("the text is taken for %s", got.Name)
	}
}

func TestTheGuessOfAShortTextIsTheSameEveryTime(t *testing.T) {
	for range 200 {
		if guess := charset.Detect([]byte("caf\xe9")); guess.Name != "windows-1252" {
			t.Fatalf("the text is taken for %s", guess.Name)
		}
	}
}

func TestTheEncodingOfATextIsRecognized(t *testing.T) {
	for _, c := range texts {
		table := strings.Repeat(c.many+"\nid,name,date,value,1234\n", 50)
		for _, text := range []string{c.few, c.many, table} {
			raw, err := c.of.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			guess := charset.Detect(raw)
			if got := guess.Decode(raw); got != text && !(c.fewAreHard && text == c.few) {
				t.Errorf("%s, %d bytes: %s (%d %%): %.60q", c.name, len(raw), guess.Name, guess.Certainty, got)
			}
			if strings.HasPrefix(c.name, "UTF-8") != (guess.Name == "utf-8") || guess.Certainty < 1 || guess.Certainty > 100 {
				t.Errorf("%s, %d bytes: %s (%d %%)", c.name, len(raw), guess.Name, guess.Certainty)
			}
		}
	}
}

func TestValidUTF8IsAlwaysUTF8(t *testing.T) {
	for _, text := range []string{"", "a", "é", "Ã©", "Ð°", "ｶﾀｶﾅ", "한", "\u0080", strings.Repeat("x", 70_000) + "é", strings.Repeat("字", 30_000), "a\x00b", "0000000000"} {
		if guess := charset.Detect([]byte(text)); guess.Name != "utf-8" || guess.Certainty != 100 {
			t.Errorf("%.20q: %s (%d %%)", text, guess.Name, guess.Certainty)
		}
	}
}

// Markup is English to the statistics of the library, so it outweighs the text.
// A few words of Latin script in it stay ambiguous.
func TestMarkupDoesNotDecide(t *testing.T) {
	markup := strings.Repeat("<item><title>%</title><link>http://example.org/news/item.html?from=feed</link><category domain=\"http://example.org\">news</category></item>\n", 40)
	for _, c := range texts {
		text := strings.ReplaceAll(markup, "%", c.few)
		raw, err := c.of.NewEncoder().Bytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if guess := charset.Detect(raw); guess.Decode(raw) != text && !c.fewAreHard && c.name != "Windows-1252" && c.name != "Windows-1254" {
			t.Errorf("%s: %s (%d %%)", c.name, guess.Name, guess.Certainty)
		}
	}
}

func TestALateCharacterDecides(t *testing.T) {
	text := strings.Repeat("id,name,value\n", 20_000) + "Müller;Größe;Straße\n"
	raw, err := charmap.Windows1252.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := charset.Detect(raw).Decode(raw); got != text {
		t.Errorf("%q", got[len(got)-30:])
	}
}

func TestACharacterThatIsCutLeavesUTF8(t *testing.T) {
	for n := 1; n < 4; n++ {
		if guess := charset.Detect([]byte("潮汐和月亮𝄞"[:15+n])); guess.Name != "utf-8" {
			t.Errorf("%d bytes: %s", 15+n, guess.Name)
		}
	}
}

func TestBytesThatAreNoTextAreReadAsSomething(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, raw := range []string{string(all), "\xFF", "\x80\x80", "\x00", "\x00\x00\x00", "\xFF\xFF\xFF\xFF\xFE", "caf\xE9", "潮汐\xFF\x00\x1B."} {
		guess := charset.Detect([]byte(raw))
		if text := guess.Decode([]byte(raw)); text == "" && raw != "" {
			t.Errorf("%q: %s", raw, guess.Name)
		}
	}
	if got := charset.Detect([]byte("caf\xE9")).Decode([]byte("caf\xE9")); got != "café" {
		t.Errorf("%q", got)
	}
}
