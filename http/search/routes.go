package search

import "turnstone/http/route"

// Routes returns the routes of searches.
func (h *Handlers) Routes() route.Table {
	return route.Table{
		Tags: []route.Tag{{Name: "search", Description: "Search in titles and messages."}},
		Routes: []route.Route{
			route.Call("GET", "/search", "search", "Search the account", route.Searches, h.search).
				DescribedAs("Finds conversations by their titles, messages by their text, on all branches, the files of the library by their names and " +
					"their text, artifacts by their titles and the text of their current versions, and research tasks by their questions. " +
					"Text is found as soon as it is stored; the text of an answer, when its turn has ended. " +
					"Case, accents and forms of characters do not matter. In q, words are separated by spaces, and all of them must occur; " +
					"the last word also matches words that begin with it. Quotation marks make a phrase, and a hyphen before a word or a phrase excludes it. " +
					"Other forms of the words are found after the words themselves: by their stems in the language of the text, Müller also as Mueller, " +
					"and German compounds by their ends (Versicherung finds Krankenversicherung); a phrase has its words as they are. " +
					"If nothing is found because of a misspelled word, did_you_mean has a query that finds something. " +
					"Languages without spaces between words, and Korean, match by any part of a text. " +
					"Names with signs (C++, C#, .NET) are words, and so are the parts of a name like HttpServer; one Latin letter matches only itself. " +
					"Filters in q: from:me or from:assistant, kind:message (or conversation, file, artifact, task), in:\"name of a project\" or in: with the identifier of a project or a conversation, " +
					"before: and after: with a day, a month, a year or a time (after includes it). Any other value is searched as words. " +
					"A query without a word that is not excluded finds nothing. " +
					"Titles come first, then messages, then files, then artifacts, then research tasks. " +
					"Within each kind, matches whose words stand together come first, then whole words, then newer ones. " +
					"A long file is searched in sections of about 32 kB, each of which has to have all words; the file is found once, by its best section. " +
					"With role, only messages are found; from and to limit the time of creation. " +
					"With conversation_id, the files are those of the messages of the conversation. " +
					"The newest matches are ranked in groups of some hundred. A page may have fewer results than limit, or none, and still a next_cursor, with which the search continues. " +
					"Temporary conversations are never found. Searches have a limit of their own (search)."),
			route.Call("GET", "/projects/{project_id}/search", "searchProject", "Search a project", route.Searches, h.searchProject).
				DescribedAs("Finds what GET /search finds, by the same rules, in the conversations, with their artifacts, and the files that are in the project now. " +
					"A conversation that is moved is found in its new project at once. A search of a deleted project finds nothing. " +
					"Project searches and account searches share one limit (search)."),
		},
	}
}
