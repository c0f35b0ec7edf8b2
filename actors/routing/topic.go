package routing

import (
	"slices"
	"strings"
	"unicode"
)

// This file decides from the words of a message whether it is about software. The more a word is used for software only, the
// more it counts. Words of other topics count against it. Languages without spaces, and Arabic, which joins articles to words,
// are searched for parts of words.

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

var (
	// strongWords are used for software only.
	strongWords = vocabularyOf(`logging logger loggers refactored observer singleton observable* tcp udp dns tls ssl ipv4 ipv6 https smtp imap dhcp subnet subnetz* telnet unicode posix apikey crud orm mvc mvvm oop tdd cicd devops cli gui regexes sudoers
		datastructure* datenstruktur* codebeispiel* klassenmethode* typsystem* zeilenumbruch* typescript javascript golang kotlin php c++ c# perl haskell scala fortran react vue angular svelte jquery tailwind django
		flask fastapi rails laravel numpy pandas pytorch tensorflow kubernetes kubectl docker dockerfile terraform ansible nginx postgres postgresql mysql sqlite
		mongodb redis graphql sql regex regexp json yaml xml html css div webpack npm yarn pip cargo gradle maven github gitlab git refactor* refaktor* segfault
		stacktrace backend frontend api apis endpoint* middleware async await asyncio goroutine* mutex pytest jest junit codebase localhost oauth jwt websocket*
		prisma cypress playwright selenium puppeteer redux zustand nextjs nuxt deno nodejs nestjs fastify kafka rabbitmq celery elasticsearch opensearch
		cassandra dynamodb supabase firebase prometheus grafana jenkins circleci bitbucket makefile* cmake bazel llvm gcc clang gdb valgrind wasm webassembly opengl
		vulkan cuda opencl tkinter godot pygame opencv scipy sklearn keras langchain huggingface sqlalchemy hibernate mybatis jpa mockito testng rspec phpunit
		eloquent systemd crontab cronjob* tmux emacs vim neovim aws ec2 gcp cloudformation pulumi vercel netlify heroku grpc protobuf openapi swagger webhook* oauth2
		saml cors csrf xss heapsort bubblesort timsort bfs dfs dijkstra trie memoization memoiz* polymorphism* semaphore* deadlock* malloc monorepo* rebase changelog
		endpunkt* shell shellscript* bashscript* skripte dockercompose uvicorn gunicorn pydantic poetry virtualenv venv conda numba polars pyspark hadoop dbt airflow
		excelmakro* autocomplete tokenizer lexer parser parsers middleware* boilerplate dataframe* ternary closures stdout stderr stdin utf8 ascii base64 sha256 md5
		kernel* bootloader firmware arduino esp32 raspberry microcontroller* mikrocontroller* verilog vhdl fpga solidity smartcontract* assembler subquery subselect
		foreignkey deserializ* serializ* serialisier* sérialis* instanzi* instanci* iterator* iterador* itérateur* getter* setter* constructor* konstruktor* constructeur*
		typeerror nullpointer* keyerror valueerror linter crud bash powershell kompilier* compilador compilateur compiler* quellcode unittest* programming
		programmier* debug* débog* depura* csv url callback* undefined nullptr quicksort mergesort leetcode hashmap umgebungsvariable* klassendiagramm* vba localstorage jsx tsx sdk
		ide vscode intellij xcode elixir clojure dart flutter spring hibernate symfony wordpress sass scss vite eslint* dotnet matplotlib jupyter`)
	// mediumWords are mostly used for software, unless the message is about another topic.
	mediumWords = vocabularyOf(`python java programm* program programs programa programas programming code codes coding código codigo website* webseite* web commit
		commits function functions funktion funktionen fonction fonctions función funciones method methods methode* méthode* método* compil* kompil* bug bugs query queries
		abfrage* requête* consulta database* datenbank* server servers serveur* servidor* login exception* ausnahme* excepción* decorator* decorador*
		décorateur* dekorator* monad* grep chmod sudo segmentation let const stash pip rust swift linux ubuntu debian android library bibliothek framework*
		plugin* variable variables array arrays string strings loop loops schleife* boucle* bucle* recursi* rekursi* récursi* parse* async* app apps implement* implementier* implément* pipeline* dictionary dict`)
	// everydayWords are used more often for other things. They only help when words of another topic are there, too.
	everydayWords = vocabularyOf(`class classes klasse* classe* clase* test tests pruebas prueba list liste lista table* tableau* rest go service binary ruby hook hooks log branch node
		index notation thread* pile stack plante module module* form forms port ports host* user users job jobs event events object* objet* objeto* route
		routes request* button* knopf bouton* argument* session* token* cookie* column* pixel* template* vorlage* plantilla* modèle* dossier* folder* carpeta*
		ordner* return worker* memory mémoire memoria speicher* lambda* bot bots falla échoue slack event* prompt* unit`)
	// weakWords are used for other things, too: two of them are needed.
	weakWords = vocabularyOf(`script* skript* sort sorts sorting interfaz* funcion* interface* component* komponent* composant* unitaires unitarias fehler* error* erreur* errores données datos controller* contrôleur*
		controlador* connexion deploy* pipeline* ci merge* programme* application* aplicación* anwendung* pointer* threads cache* file files datei* fichier*
		archivo* rename* renommer* import* linked binaire binaria schema* macro* dict dictionary déploiement* migration* migración* builds extension*
		erweiterung* chrome firefox telegram discord objekt* sortier* trie ordenar ordena ordeno formular* formulaire* formulario* png pngs jpg jpeg jpegs
		paginat* paginier* crash* absturz* abstürzt modul módulo* introuvable kompilierung compilación compilation fehlschlägt schlägt routing benutzer*
		utilisateur* usuario* anfrage* response* antwortcode* header* payload* sesión* proxy* socket* ssh ftp cron s3 azure bucket* queue* warteschlange*
		scheduler* listener* handler* callback* promise* closure* enum* struct* generic* generics parameter* paramètre* parámetro* rückgabe* renvoie devuelve
		récursive rekursive recursiva heap ram cpu terminal* console* konsole* consola* windows macos ios iphone-app excel formel spreadsheet*
		tabellenkalkulation* frontend* backend* widget* botón* dropdown* tooltip* navbar* sidebar* layout* responsive grid flexbox css-klasse algorithm*
		algorithmus algorithme* algoritmo* complexity komplexität complejidad complexité encrypt* verschlüssel* chiffr* cifra* hash* password* passwort*
		mot-de-passe contraseña* upload* download* datetime timestamp* zeitstempel* timezone* container* conteneur* contenedor* http implement* implementier*
		implément* asynchron*`)
	// actionWords say what software work does.
	actionWords = vocabularyOf(`write writes schreib* écri* ecri* escrib* fix* behebe* reparier* corrig* add adds füge hinzu* ajoute* añad* agrega* create* erstell* crée*
		crea build baue optimiz* optimier* optimis* convert* konvertier* wandle rewrite* explain erklär* expli* how wie comment cómo como why warum pourquoi improve*
		verbesser* amélior* mejora* generat* generier* génère* set configur* richte design mock implement* implementier* implément* benenne* renomm* renombr* rename* optimise
		fails fail startet démarre arranca lever lève lanza wirft throws undo rückgängig annuler deshago call rufe appeler llamo use using review überprüf* vérifi* revisa* was what qué que macht does bedeutet difference unterschied différence diferencia cuál fehl schlägt schlagen broken kaputt help understand show hilf verstehe* aide comprendre ayuda entender migrate migrier* migre migra devuelve`)
	// otherWords belong to other topics.
	otherWords = vocabularyOf(`fernseh* télé televis* tv radio* episode* limerick* kurzgeschicht* math maths mathe* speech sprache* motor* diesel* moteur* wärmepump* biolog* chemistr* chemie* chimie* química* physik* physics photosynth* fotos* abitur* exam exams examen* thesis
		romantic* romantisch* anxious marathon* diet* diät* régime dieta* poem* poet* gedicht* poème* poema* haiku story stories geschicht* histoire* cuento* song* lied lieder chanson* canción* essay* aufsatz* ensayo*
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
		"unit test,stack trace,module not found,exit code,cannot read propert,permission denied,connection refused,out of memory,index out of,null reference,stack overflow,"+
		"time complexity,space complexity,rest api,rest endpoint,last commit,letzten commit,dernier commit,último commit,version control,load balancer,rate limit,primary key,"+
		"foreign key,left join,inner join,one-liner,next.js,node.js,vue.js,three.js,asp.net,.net core,entity framework,react native,neural network,chrome extension,"+
		"browser extension,vs code,hello world,ligne de commande,línea de comandos,control de versiones,array of,base de données,base de datos,code "+
		"review,binary search,linked list,hash map,web app,web server,web scraper,visual studio", ",")

	strongParts = strings.Fields(`リファクタリング デバッグ コンパイル プログラミング ソースコード ユニットテスト 単体テスト 正規表現 データベース クエリ デプロイ スタックトレース 例外処理
		バックエンド フロントエンド リポジトリ プルリクエスト 再帰関数 マイグレーション 連結リスト 二分探索 非同期 ビルド モジュール エンドポイント スクリプト コンパイラ オブジェクト指向 ウェブフック ターミナル コマンドライン 環境変数 デコレータ イテレータ
		ジェネレータ シリアライズ ミドルウェア ユニットテスト E2Eテスト 単体試験 型エラー 構文エラー برمجية برمجي البرمجة جافاسكريبت شيفرة قاعدة|بيانات تعبير|نمطي تعبيرًا|نمطيًا أعد|هيكلة
		إعادة|هيكلة اختبارات|الوحدة خوارزمية متزامن سكربت سكريبت واجهة|برمجة واجهة|برمجية سطر|الأوامر بيئة|التطوير كائنية جافا|سكريبت لغة|سي الخوارزمية تكرارية عودية التكرارية العودية مستودع طلب|سحب نقطة|نهاية خادم|ويب`)
	mediumParts = strings.Fields(`再帰 クエリー コード 関数 クラス メソッド 変数 配列 ループ プログラム スクリプト サーバー アプリ 実装 ライブラリ バグ コミット プラグイン 拡張機能 دالة دوال متغير مصفوفة برنامج بايثون كود جافا استعلام خادم استثناء`)
	weakParts   = strings.Fields(`テスト エラー コントローラ フック ファイル 例外 ログイン インターフェース コンポーネント コンテナ パイプライン アルゴリズム 再帰 フォルダ 画面 配備 並べ替え ソート オブジェクト ボタン フォーム ユーザー リクエスト レスポンス トークン セッション キャッシュ スレッド ボット
		文字列 整数 暗号化 ハッシュ パスワード ポート メモリ 引数 戻り値 型 حلقة خطأ أخطاء تحكم مكون صنف ملف تطبيق تسجيل|الدخول حاوية واجهة اختبار وحدة ترحيل مجلد كائن ترتيب أرتب تسجيل|دخول زر نموذج
		مستخدم ذاكرة خيط بوت إضافة|متصفح كلمة|المرور تشفير سلسلة|نصية معامل البناء`)
	actionParts = strings.Fields(`書いて 直して 修正 追加 作成 作って 実装 変換 最適化 説明 変更 設定 方法 起動 には 取り消 教えて اكتب أضف اضف أصلح اصلح أنشئ انشئ صحح حوّل يحوّل اشرح كيف حسّن نفّذ لماذا ما|الفرق لا|تعمل غيّر`)
	otherParts  = strings.Fields(`詩 俳句 物語 小説 歌詞 レシピ 料理 旅行 天気 誕生日 映画 ヘビ 蛇 島 コーヒー 健康 病院 検査 結婚 ドレスコード バーコード 手紙 庭 株 投資 レストラン 教師 面接 郵便 自転車 自動車 会議 قصيدة شعر قصة أغنية
		وصفة طبخ سفر رحلة طقس ميلاد فيلم ثعبان ثعابين أفعى جزيرة قهوة صحة طبيب زفاف رسالة حديقة خصم مطعم رواية سيارات دراجة الاجتماع الأسهم تمارين معلم الحرب البريدي`)
	continuingParts = strings.Fields(`次に もっと も書 にして それ これ 今度 ここ 名を الآن أيض هذا هذه اجعل أسرع بدلا`)
)

// topics counts the distinct words of a message by what they say about its topic.
type topics struct{ strong, medium, weak, everyday, action, other, continuing int }

func topicsOf(text string) (found topics) {
	if len(text) > scannedHead+scannedTail {
		text = text[:scannedHead] + " " + text[len(text)-scannedTail:]
	}
	seen := map[string]bool{}
	for _, word := range strings.Fields(text) {
		if word = strings.Trim(word, `.,;:!?"'()[]`); isIdentifier(word) && !seen[word] {
			seen[word] = true
			found.strong++
		}
	}
	text = strings.ToLower(text)
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

// brands are written as identifiers are.
var brands = []string{"iPhone", "iPad", "iPod", "iMac", "iOS", "iCloud", "iTunes", "eBay", "macOS", "eBook", "eBooks", "eMail", "eMails", "iPhones", "iPads", "eSIM", "ePaper"}

// isIdentifier reports whether a word without spaces is written as only code is: in camel case, with an underscore, as an
// option of a command, or with an operator.
func isIdentifier(word string) bool {
	for _, operator := range []string{"=>", "==", "!=", "::", "</", "/>", "&&", "||", "()", "->"} {
		if strings.Contains(word, operator) && len(word) < 100 {
			return true
		}
	}
	if option, is := strings.CutPrefix(word, "--"); is {
		return len(option) > 2 && unicode.IsLower(rune(option[0]))
	}
	if word == "" || !unicode.IsLower(rune(word[0])) || slices.Contains(brands, word) {
		return false
	}
	upper := false
	for i, r := range word {
		switch {
		case r == '_' && 0 < i && i < len(word)-1:
			upper = true
		case r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			return false
		case unicode.IsUpper(r) && i > 1:
			upper = true
		}
	}
	return upper
}

func (t *topics) count(word string) {
	switch {
	case otherWords.has(word):
		t.other++
	case strongWords.has(word):
		t.strong++
	case mediumWords.has(word):
		t.medium++
	case everydayWords.has(word):
		t.everyday++
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

// searchParts looks for parts of words, in languages without spaces and in Arabic. "|" stands for a space.
func (t *topics) searchParts(text string) {
	for _, list := range []struct {
		parts []string
		to    *int
	}{{strongParts, &t.strong}, {mediumParts, &t.medium}, {weakParts, &t.weak}, {actionParts, &t.action}, {otherParts, &t.other}, {continuingParts, &t.continuing}} {
		for _, part := range list.parts {
			if strings.Contains(text, strings.ReplaceAll(part, "|", " ")) {
				*list.to++
			}
		}
	}
}

// software reports whether a message is about software.
func (t topics) software() bool {
	if t.other == 0 {
		return 2*t.strong+2*t.medium+t.weak >= 2
	}
	return 2*t.strong+t.medium+t.weak+min(t.everyday, 1)+min(t.action, 1)-2*t.other >= 3
}

// continues reports whether a short message may continue software work.
func (t topics) continues() bool {
	return t.other == 0 && t.continuing+t.action+t.weak+t.medium+t.everyday+t.strong > 0
}
