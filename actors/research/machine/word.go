package machine

import "strings"

// reportWords are the texts that the service adds to a report, in one language.
type reportWords struct {
	sources, contradictions, disagree, nothing string
	unsupported                                string // follows a sentence that no excerpt supports
	timeOver, tokensOver, pagesOver            string
	modelFailed, searchFailed                  string
	endedEarly, skipped                        string // the user asked for the report; a question was not searched to the end
}

var reportLanguages = map[string]*reportWords{
	"en": {
		sources: "Sources", contradictions: "Contradictions",
		disagree:     "These sources disagree, or seem to:",
		nothing:      "No source was found that answers this question.",
		unsupported:  "*(not supported by a source)*",
		timeOver:     "The time for this task was used up, so the report consists of what was found until then.",
		tokensOver:   "The tokens for this task did not suffice to write every section, so some consist of excerpts from the sources.",
		pagesOver:    "The pages for this task were used up: further sources were found and not read.",
		modelFailed:  "The model could not be used in the end, so some sections consist of excerpts from the sources.",
		searchFailed: "Some searches failed, so sources may be missing.",
		endedEarly:   "The report was requested before the search had ended, so sources may be missing.",
		skipped:      "The search had not reached this question.",
	},
	"ar": {
		sources: "المصادر", contradictions: "تناقضات",
		disagree:     "هذه المصادر متعارضة أو تبدو كذلك:",
		nothing:      "لم يُعثر على مصدر يجيب عن هذا السؤال.",
		unsupported:  "*(لا يدعمه أي مصدر)*",
		timeOver:     "انتهى الوقت المخصص لهذه المهمة، لذلك يقتصر التقرير على ما عُثر عليه حتى ذلك الحين.",
		tokensOver:   "لم تكفِ الرموز المخصصة لهذه المهمة لكتابة كل الأقسام، لذلك يتكون بعضها من مقتطفات من المصادر.",
		pagesOver:    "نفد عدد الصفحات المخصص لهذه المهمة: عُثر على مصادر أخرى لم تُقرأ.",
		modelFailed:  "تعذّر استخدام النموذج في النهاية، لذلك تتكون بعض الأقسام من مقتطفات من المصادر.",
		searchFailed: "تعذّرت بعض عمليات البحث، لذلك قد تنقص بعض المصادر.",
		endedEarly:   "طُلب التقرير قبل انتهاء البحث، لذلك قد تنقص بعض المصادر.",
		skipped:      "لم يصل البحث إلى هذا السؤال.",
	},
	"ja": {
		sources: "出典", contradictions: "矛盾点",
		disagree:     "次の出典は互いに食い違っているか、その可能性があります。",
		nothing:      "この質問に答える出典は見つかりませんでした。",
		unsupported:  "*（出典による裏付けなし）*",
		timeOver:     "このタスクの時間を使い切ったため、それまでに見つかった内容だけのレポートです。",
		tokensOver:   "このタスクのトークンではすべての節を書けなかったため、一部の節は出典からの抜粋です。",
		pagesOver:    "このタスクのページ数を使い切ったため、見つかっても読んでいない出典があります。",
		modelFailed:  "最後にモデルを利用できなかったため、一部の節は出典からの抜粋です。",
		searchFailed: "一部の検索に失敗したため、見つかっていない出典がある可能性があります。",
		endedEarly:   "検索が終わる前にレポートが求められたため、見つかっていない出典がある可能性があります。",
		skipped:      "この質問の検索は行われませんでした。",
	},
}

// wordsOf returns the texts in a language of the app; English for any other.
func wordsOf(language string) *reportWords {
	base, _, _ := strings.Cut(language, "-")
	if words := reportLanguages[base]; words != nil {
		return words
	}
	return reportLanguages["en"]
}
