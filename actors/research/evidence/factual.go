package evidence

import (
	"strings"
	"unicode/utf8"

	"turnstone/protocol/words"
)

const (
	// minFactual is the least weight of a factual sentence without a number: a word weighs 2, a character of a script without
	// spaces 1.
	minFactual = 7
	// maxTransition is the greatest weight of a sentence that begins like a transition and states nothing else.
	maxTransition = 18
)

// isFactual reports whether a sentence states something that needs a source: it is no question, no introduction of a list or of the
// report, and no mere transition.
func isFactual(plain string) bool {
	body := strings.TrimRight(plain, " \t\r\n*_\"'”’»)]」』）|")
	last, _ := utf8.DecodeLastRuneInString(body)
	if strings.ContainsRune("?？؟:：", last) {
		return false
	}
	weight, digits := 0, false
	var folded strings.Builder
	eachToken(body, true, func(t token) bool {
		weight += 2
		if t.unspaced {
			weight--
		} else if folded.Len() > 0 {
			folded.WriteByte(' ')
		}
		folded.WriteString(t.text)
		digits = digits || isDigit(t.text[0])
		return true
	})
	all := folded.String()
	switch {
	case weight < minFactual && (!digits || weight < 4):
		return false
	case introduces(all):
		return false
	case !digits && weight <= maxTransition && beginsWith(all, transitions):
		return false
	}
	return true
}

// introduces reports whether a sentence describes the report.
func introduces(folded string) bool {
	rest, is := cutAny(folded, reportSubjects)
	if !is {
		return beginsWith(folded, openings)
	}
	begin := rest[:min(len(rest), 200)]
	for verb := range reportVerbs {
		if at := strings.Index(begin, verb); at >= 0 && (at == 0 || begin[at-1] == ' ' || begin[at] >= utf8.RuneSelf) {
			return true
		}
	}
	return false
}

func beginsWith(folded string, beginnings []string) bool {
	_, is := cutAny(folded, beginnings)
	return is
}

// cutAny removes the first of some beginnings that a text has. A beginning ends with a word.
func cutAny(folded string, beginnings []string) (string, bool) {
	for _, beginning := range beginnings {
		if rest, is := strings.CutPrefix(folded, beginning); is {
			if c, _ := utf8.DecodeRuneInString(rest); rest == "" || c == ' ' || words.Unspaced(c) {
				return strings.TrimPrefix(rest, " "), true
			}
		}
	}
	return folded, false
}

// foldedList returns the entries of a list, separated by |, as sentences are compared.
func foldedList(list string) (all []string) {
	for entry := range strings.SplitSeq(list, "|") {
		var b strings.Builder
		eachToken(entry, false, func(t token) bool {
			if b.Len() > 0 && !t.unspaced {
				b.WriteByte(' ')
			}
			b.WriteString(t.text)
			return true
		})
		all = append(all, b.String())
	}
	return all
}

func foldedSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, entry := range foldedList(list) {
		set[entry] = true
	}
	return set
}

var (
	reportSubjects = foldedList("this report|the report|this section|the following section|the next section|this article|this document|this overview|this summary|this chapter|the table|the table below|the following table|in this report|in this section|in the following|below|we|i" +
		"|dieser bericht|dieser abschnitt|der folgende abschnitt|dieses kapitel|diese übersicht|die tabelle|die folgende tabelle|in diesem bericht|in diesem abschnitt|im folgenden|nachfolgend|wir" +
		"|ce rapport|cette section|la section suivante|ce document|le tableau|le tableau suivant|dans ce rapport|dans cette section|nous" +
		"|este informe|esta sección|este documento|la siguiente sección|la tabla|la siguiente tabla|en este informe|en esta sección|a continuación" +
		"|este relatório|esta seção|neste relatório|questo rapporto|questa sezione|in questo rapporto" +
		"|этот отчет|данный отчет|этот раздел|в этом отчете|в данном отчете|в этом разделе|мы|ниже" +
		"|هذا التقرير|هذا القسم|في هذا التقرير|في هذا القسم" +
		"|यह रिपोर्ट|इस रिपोर्ट में|यह खंड|इस खंड में" +
		"|本報告書|本報告|このレポート|この報告書|本レポート|このセクション|以下|本節|本稿|本报告|本文|本节|下文|下面|以下|이 보고서|본 보고서|이 절")
	reportVerbs = foldedSet("compares|compare|describes|describe|summarizes|summarises|summarize|examines|examine|covers|cover|looks at|look at|reviews|presents|present|explains|explain|answers|discusses|discuss|outlines|explores|lists|shows|show|gives|is organized|is organised|is structured|analyzes|analyses|analyze|investigates|considers|provides" +
		"|vergleicht|vergleichen|beschreibt|fasst|untersucht|behandelt|stellt|zeigt|erklärt|gibt|werden|betrachtet|erläutert|gliedert|verglichen" +
		"|compare|décrit|résume|examine|présente|explique|aborde|analyse|traite|allons|montre|comparons|présentons" +
		"|compara|describe|resume|examina|presenta|explica|analiza|aborda|muestra|se comparan|se presentan|se analizan|analisa|apresenta|confronta|descrive" +
		"|сравнивает|описывает|рассматривает|рассматриваются|анализирует|обобщает|представлены|сравниваются|сравним|рассмотрим|показывает" +
		"|يقارن|نقارن|يصف|يلخص|يستعرض|نستعرض|يتناول|نتناول|يحلل|مقارنة|ثلاثة" +
		"|तुलना|वर्णन|समीक्षा|विश्लेषण|चर्चा|सारांश" +
		"|比較|説明|検討|まとめ|概説|紹介|分析|述べ|示し|比较|介绍|说明|讨论|总结|概述|探讨|列出|비교|설명|분석|다룬|살펴")
	openings = foldedList("here is an overview|here is a summary|here are the|here is the|the following|see also|let us|let s|more on this|the details follow|as an ai|i could not find|i found no|no source was found|no sources were found|the sources do not" +
		"|hier ist|hier sind|folgende|siehe auch|mehr dazu|keine quelle|voici|voir aussi|les points suivants|aqui esta|aqui estan|vease tambien|los siguientes|вот|см также|далее|следующие|يقارن هذا التقرير|يستعرض هذا التقرير|يلخص هذا التقرير|إليك|فيما يلي|انظر ايضا|यहाँ|निम्नलिखित|次に|以下に|続いて|接下来|首先让我们|다음은")
	transitions = foldedList("in summary|in short|to sum up|in conclusion|overall|first|second|next|finally|however|that said|on the other hand|with this in mind|there is more|this raises|this leads|this brings|against this background|let us now" +
		"|zusammenfassend|kurz gesagt|insgesamt|zunächst|zum schluss|schließlich|allerdings|andererseits|vor diesem hintergrund|kommen wir|damit stellt sich" +
		"|en résumé|en bref|en conclusion|cependant|d abord|ensuite|enfin|d autre part|passons|en resumen|en conclusión|sin embargo|por otro lado|primero|por último|pasemos" +
		"|итак|в заключение|таким образом|однако|с другой стороны|во первых|наконец|перейдем|باختصار|في الختام|من ناحية اخرى|ومع ذلك|संक्षेप में|अंत में|दूसरी ओर|हालांकि" +
		"|要するに|まとめると|一方で|最後に|しかし|总之|综上所述|另一方面|最后|然而|요약하면|한편|마지막으로")
)
