package routing

import (
	"strings"
	"unicode"
)

// This file decides from the words of a message whether it is about software. Words of software that are not used for anything
// else count more than those that are, and words of other topics count against it. Languages that are written without spaces,
// and Arabic, which joins its articles to its words, are searched for parts of words.

const (
	// scannedHead and scannedTail are the bytes at the beginning and the end of a message that are scanned for topics.
	scannedHead = 1 << 10
	scannedTail = 1 << 9
	// maxContinuation is the longest message, in bytes, that is taken for a continuation of earlier work.
	maxContinuation = 400
	// minStem is the shortest beginning of a word that is looked up.
	minStem = 3
)

// A vocabulary has whole words, and the beginnings of words, which end with "*" in the lists below.
type vocabulary struct{ words, stems map[string]bool }

func vocabularyOf(list string) vocabulary {
	v := vocabulary{map[string]bool{}, map[string]bool{}}
	for _, word := range strings.Fields(list) {
		if stem, is := strings.CutSuffix(word, "*"); is {
			v.stems[stem] = true
		} else {
			v.words[word] = true
		}
	}
	return v
}

func (v vocabulary) has(word string) bool {
	if v.words[word] {
		return true
	}
	for end := minStem; end <= len(word); end++ {
		if v.stems[word[:end]] {
			return true
		}
	}
	return false
}

var ( //nolint:misspell // words of several languages
	// strongWords are used for software only.
	strongWords = vocabularyOf(`typescript javascript golang kotlin php c++ c# perl haskell scala fortran react vue angular svelte jquery tailwind django
		flask fastapi rails laravel numpy pandas pytorch tensorflow kubernetes kubectl docker dockerfile terraform ansible nginx postgres postgresql mysql sqlite
		mongodb redis graphql sql regex regexp json yaml xml html css div webpack npm yarn pip cargo gradle maven github gitlab git refactor* refaktor* segfault
		stacktrace backend frontend api apis endpoint* middleware async await asyncio goroutine* mutex pytest jest junit codebase localhost oauth jwt websocket*
		typeerror nullpointer* keyerror valueerror linter crud bash powershell kompilier* compilador compilateur compiler* quellcode unittest* programming
		programmier* debug* débog* depura* csv url callback* undefined nullptr quicksort mergesort leetcode hashmap umgebungsvariable* klassendiagramm* vba localstorage jsx tsx sdk
		ide vscode intellij xcode elixir clojure dart flutter spring hibernate symfony wordpress sass scss vite eslint* dotnet matplotlib jupyter`)
	// weakWords are used for other things, too.
	weakWords = vocabularyOf(`python java rust go ruby swift linux code codes coding código codigo script* skript* function* funktion* fonction* función funcion*
		class classes klasse* classe* clase* interface* component* komponent* composant* hook hooks test tests unit unitaires unitarias pruebas bug bugs fehler* error*
		erreur* errores exception* ausnahme* excepción* variable* array* string* strings loop* schleife* boucle* bucle* datenbank* database* données datos query*
		abfrage* requête* consulta* server* serveur* servidor* controller* contrôleur* controlador* login connexion deploy* pipeline* ci commit* merge* branch library
		bibliothek* framework* method* methode* méthode* método* parse* programm* program programa* programme* app apps application* aplicación* anwendung* module* pointer*
		index* node recursi* rekursi* récursi* notation thread* threads cache* file files datei* fichier* archivo* rename* renommer* import* compil* service lista* list liste* linked binary
		binaire binaria schema* macro* dict dictionary website* webseite* déploiement* migration* migración* log rest container* conteneur* contenedor* http table* tableau* implement* implementier* implément* asynchron*`)
	// actionWords say what software work does.
	actionWords = vocabularyOf(`write writes schreib* écri* ecri* escrib* fix* behebe* reparier* corrig* add adds füge hinzu* ajoute* añad* agrega* create* erstell* crée*
		crea build baue optimiz* optimier* optimis* convert* konvertier* wandle rewrite* explain erklär* expli* how wie comment cómo como why warum pourquoi improve*
		verbesser* amélior* mejora* generat* generier* génère* set configur* richte design mock implement* implementier* implément* benenne* renomm* renombr* rename* optimise
		fails fail startet démarre arranca lever lève lanza wirft throws undo rückgängig annuler deshago call rufe appeler llamo use using`)
	// otherWords belong to other topics.
	otherWords = vocabularyOf(`poem* poet* gedicht* poème* poema* haiku story stories geschicht* histoire* cuento* song* lied lieder chanson* canción* essay* aufsatz* ensayo*
		recipe* rezept* recette* receta* novel novels roman romane romans novela* nouvelle movie* film* película* travel* trip reise* voyage* viaj* holiday* vacation* urlaub* vacances
		vacaciones snake* schlange* pythonschlang* serpent* serpiente* doctor* arzt* médecin* médico* health* gesundheit* santé salud weather wetter* météo birthday* geburtstag* anniversaire*
		cumpleaños wedding* hochzeit* mariage* boda* garden* garten* jardin* jardín car cars auto autos elektroauto* voiture* coche* coffee kaffee* café island* insel* île isla
		stock stocks aktie* invest* bourse bolsa politic* politi* music* musik* musique* música* restaurant* cook* koch* cuis* cocin* dog dogs hund* chien* perro* teacher* lehrer*
		professeur* profesor* pupils schüler* élève* letter* brief* lettre* carta* tennis fußball* football* fútbol* sport* workout* exercise* ejercicio* training* bicycle* fahrrad*
		vélo* bicicleta* liver leber foie hígado interview* vorstellungsgespräch* entretien* entrevista* dress vestimentaire area postal* vorwahl* bird* vogel* meeting* besprechung*
		réunion* reunión* card karte* geburtstagskarte* carte tarjeta* boss* vermieter* landlord* world welt* love guerre guerra war`)
	// continuingWords refer to what was said before, or change it.
	continuingWords = vocabularyOf(`now also it this that instead again same faster rename* jetzt nun auch es das dies* schneller stattdessen dafür maintenant aussi ça cela
		rends fais même plus ahora también esto eso hazlo haz mismo lo más asíncron* asynchron*`)

	strongPhrases = strings.Split("pull request,environment variable,variables d'environnement,variable de entorno,variables de entorno,for loop,while loop,for-schleife,"+
		"boucle for,bucle for,big o,off by one,merge conflict,source code,command line,design pattern,data structure,race condition,memory leak,dependency injection,"+
		"unit test,stack trace,base de données,base de datos,code review,binary search,linked list,hash map,web app,web server,web scraper,visual studio", ",")

	strongParts = strings.Fields(`リファクタリング デバッグ コンパイル プログラミング ソースコード ユニットテスト 単体テスト 正規表現 データベース クエリ デプロイ スタックトレース 例外処理
		バックエンド フロントエンド リポジトリ プルリクエスト 再帰関数 マイグレーション 連結リスト 二分探索 非同期 برمجية برمجي البرمجة جافاسكريبت شيفرة قاعدة|بيانات تعبير|نمطي تعبيرًا|نمطيًا أعد|هيكلة
		إعادة|هيكلة اختبارات|الوحدة خوارزمية متزامن سكربت سكريبت`)
	weakParts = strings.Fields(`スクリプト コード 関数 クラス メソッド 変数 配列 ループ テスト エラー バグ サーバー コントローラ フック ファイル 例外 プログラム アプリ ログイン 実装 インターフェース
		コンポーネント コンテナ パイプライン コミット アルゴリズム ライブラリ 再帰 دالة دوال متغير مصفوفة حلقة خطأ أخطاء استثناء خادم تحكم مكون صنف ملف تطبيق تسجيل|الدخول استعلام بايثون جافا كود برنامج
		حاوية واجهة اختبار وحدة ترحيل`)
	actionParts = strings.Fields(`書いて 直して 修正 追加 作成 作って 実装 変換 最適化 説明 変更 設定 方法 起動 には 取り消 教えて اكتب أضف اضف أصلح اصلح أنشئ انشئ صحح حوّل يحوّل اشرح كيف حسّن نفّذ لماذا ما|الفرق لا|تعمل غيّر`)
	otherParts  = strings.Fields(`詩 俳句 物語 小説 歌詞 レシピ 料理 旅行 天気 誕生日 映画 ヘビ 蛇 島 コーヒー 健康 病院 検査 結婚 ドレスコード バーコード 手紙 庭 株 投資 レストラン 教師 面接 郵便 自転車 自動車 会議 قصيدة شعر قصة أغنية
		وصفة طبخ سفر رحلة طقس ميلاد فيلم ثعبان ثعابين أفعى جزيرة قهوة صحة طبيب زفاف رسالة حديقة خصم مطعم رواية سيارات دراجة الاجتماع الأسهم تمارين معلم الحرب البريدي`)
	continuingParts = strings.Fields(`次に もっと も書 にして それ これ 今度 ここ 名を الآن أيض هذا هذه اجعل أسرع بدلا`)
)

// topics counts the distinct words of a message by what they say about its topic.
type topics struct{ strong, weak, action, other, continuing int }

func topicsOf(text string) (found topics) {
	if len(text) > scannedHead+scannedTail {
		text = text[:scannedHead] + " " + text[len(text)-scannedTail:]
	}
	text = strings.ToLower(text)
	seen := map[string]bool{}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '+' && r != '#' || r >= 0x3000
	})
	for _, word := range words {
		if seen[word] {
			continue
		}
		seen[word] = true
		found.count(word)
	}
	for _, phrase := range strongPhrases {
		if strings.Contains(text, phrase) {
			found.strong++
		}
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r >= 0x0600 }) {
		found.searchParts(text)
	}
	return found
}

func (t *topics) count(word string) {
	switch {
	case otherWords.has(word):
		t.other++
	case strongWords.has(word):
		t.strong++
	case weakWords.has(word):
		t.weak++
	}
	if actionWords.has(word) {
		t.action++
	}
	if continuingWords.has(word) {
		t.continuing++
	}
}

// searchParts counts the parts of words of languages without spaces, and of Arabic. "|" stands for a space.
func (t *topics) searchParts(text string) {
	for _, list := range []struct {
		parts []string
		to    *int
	}{{strongParts, &t.strong}, {weakParts, &t.weak}, {actionParts, &t.action}, {otherParts, &t.other}, {continuingParts, &t.continuing}} {
		for _, part := range list.parts {
			if strings.Contains(text, strings.ReplaceAll(part, "|", " ")) {
				*list.to++
			}
		}
	}
}

// software reports whether a message is about software.
func (t topics) software() bool {
	if t.other == 0 && 2*t.strong+t.weak >= 2 {
		return true
	}
	return 2*t.strong+t.weak+min(t.action, 1)-2*t.other >= 3
}

// continues reports whether a short message may continue software work.
func (t topics) continues() bool { return t.other == 0 && t.continuing+t.action+t.weak+t.strong > 0 }
