package evidence

import (
	"regexp"
	"slices"
	"strings"
)

// This file has the rules for the addresses of single sites, and the parameters that do not select a page.

// trackingPrefixes and trackingKeys are the parameters that say where a reader came from. The rest of a prefix is arbitrary.
var (
	trackingPrefixes = []string{"utm_", "mc_", "pk_", "mtm_", "piwik_", "matomo_", "hsa_", "_hs", "__hs", "vero_", "oly_", "guce_", "trk", "at_custom", "sc_"}
	trackingKeys     = map[string]bool{
		"gclid": true, "gclsrc": true, "dclid": true, "gbraid": true, "wbraid": true, "gad_source": true, "gad_campaignid": true, "fbclid": true, "fb_action_ids": true,
		"fb_source": true, "msclkid": true,
		"yclid": true, "ymclid": true, "twclid": true, "ttclid": true, "igshid": true, "igsh": true, "li_fat_id": true, "mkt_tok": true, "srsltid": true, "spm": true, "scm": true,
		"ref": true, "ref_": true, "ref_src": true, "ref_url": true, "referrer": true, "referer": true, "cmpid": true, "cmp": true, "ncid": true, "icid": true,
		"smid": true, "smtyp": true, "s_cid": true, "xtor": true, "wt_mc": true, "wtmc": true, "wt.mc_id": true,
		"_ga": true, "_gl": true, "_openstat": true, "guccounter": true, "__twitter_impression": true, "sr_share": true, "ito": true, "at_medium": true,
		"at_campaign": true, "at_link_id": true, "at_bbc_team": true,
		"phpsessid": true, "jsessionid": true, "sfnsn": true, "share_id": true, "shared": true, "mbid": true, "cid_source": true, "partner": true, "soc_src": true,
		"soc_trk": true, "amp_js_v": true, "amp_gsa": true, "usqp": true,
	}
	// variantKeys are the parameters that select a variant of the same page.
	variantKeys = map[string][]string{
		"amp": {"", "1", "true"}, "outputtype": {"amp"}, "print": {"", "1", "true", "yes"}, "printable": {"", "1", "true", "yes"}, "view": {"print"},
		"format": {"print", "amp"}, "mobile": {"", "1", "true"},
		"useformat": {"mobile", "desktop"}, "mobileaction": {"toggle_view_mobile", "toggle_view_desktop"},
	}
	// refIsContent are the sites on which ref is a branch of a repository.
	refIsContent = []string{"github.com", "api.github.com", "gitlab.com", "codeberg.org"}
)

// tracks reports whether a parameter does not select a page.
func (a *address) tracks(p parameter) bool {
	key := strings.ToLower(p.key)
	if key == "ref" && slices.Contains(refIsContent, a.host) {
		return false
	}
	if values, is := variantKeys[key]; is {
		return slices.Contains(values, strings.ToLower(p.value))
	}
	return trackingKeys[key] || slices.ContainsFunc(trackingPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// wrapper is a site whose addresses contain the address of another page.
type wrapper struct{ path, key string }

var wrappers = map[string]wrapper{
	"l.facebook.com": {"/l.php", "u"}, "lm.facebook.com": {"/l.php", "u"}, "out.reddit.com": {"", "url"}, "duckduckgo.com": {"/l", "uddg"},
	"youtube.com": {"/redirect", "q"}, "vk.com": {"/away.php", "to"},
	"slack-redir.net": {"/link", "url"}, "steamcommunity.com": {"/linkfilter", "url"}, "t.umblr.com": {"/redirect", "z"}, "exit.sc": {"", "url"},
	"l.instagram.com": {"", "u"}, "linkedin.com": {"/redir/redirect", "url"},
	"zhihu.com": {"", "target"}, "link.zhihu.com": {"", "target"}, "getpocket.com": {"/redirect", "url"}, "news.google.com": {"/url", "url"},
}

var googleHost = regexp.MustCompile(`^google\.(com|[a-z]{2}|co\.[a-z]{2}|com\.[a-z]{2})$`)

// target returns the address that a wrapper contains in full, or "". An address that only the wrapper's server knows is not
// followed.
func (a *address) target() string {
	if googleHost.MatchString(a.host) {
		if rest, is := strings.CutPrefix(a.path, "/amp/s/"); is {
			return "https://" + rest
		}
		if a.path == "/url" {
			return webTarget(a.get("q"), a.get("url"))
		}
	}
	if strings.HasSuffix(a.host, ".cdn.ampproject.org") || a.host == "cdn.ampproject.org" {
		for _, kind := range []string{"/c/s/", "/v/s/", "/c/", "/v/"} {
			if rest, is := strings.CutPrefix(a.path, kind); is {
				return "https://" + rest
			}
		}
	}
	if w, is := wrappers[a.host]; is && a.path == w.path {
		return webTarget(a.get(w.key))
	}
	return ""
}

// webTarget returns the first of some texts that is an address of the web.
func webTarget(texts ...string) string {
	for _, text := range texts {
		if lower := strings.ToLower(text); strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://") {
			return text
		}
	}
	return ""
}

var (
	arxivPath = regexp.MustCompile(`^/(?:abs|pdf|html|format|ps|e-print)/((?:[a-z-]+(?:\.[A-Z]{2})?/)?\d{4,7}(?:\.\d{4,5})?)(?:v\d+)?(?:\.pdf)?$`)
	arxivDOI  = regexp.MustCompile(`^10\.48550/arxiv\.(.+?)(?:v\d+)?$`)
	videoID   = regexp.MustCompile(`^[A-Za-z0-9_-]{11}$`)
)

// known returns the canonical form of an address of a site that has several addresses for a page, or "".
func (a *address) known() string {
	switch {
	case a.host == "doi.org" || a.host == "dx.doi.org":
		doi := DOI("https://doi.org" + a.path)
		if paper := arxivDOI.FindStringSubmatch(doi); paper != nil {
			return "https://arxiv.org/abs/" + paper[1]
		}
		if doi != "" {
			return "https://doi.org/" + escapeNormally(doi)
		}
	case a.host == "arxiv.org" || a.host == "export.arxiv.org" || a.host == "ar5iv.org" || a.host == "ar5iv.labs.arxiv.org":
		if paper := arxivPath.FindStringSubmatch(a.path); paper != nil {
			return "https://arxiv.org/abs/" + paper[1]
		}
	case strings.HasSuffix(a.host, ".wikipedia.org"):
		return a.article()
	case a.host == "youtu.be" || a.host == "youtube.com" || a.host == "music.youtube.com" || a.host == "youtube-nocookie.com":
		return a.video()
	}
	return ""
}

// article returns the address of an article of Wikipedia.
func (a *address) article() string {
	title, is := strings.CutPrefix(a.path, "/wiki/")
	if at := slices.IndexFunc(a.query, func(p parameter) bool { return p.key == "title" }); a.path == "/w" && at >= 0 { // /w/index.php
		title, is = a.query[at].value, len(a.query) == 1
	} else if is {
		is = !slices.ContainsFunc(a.query, func(p parameter) bool { return !a.tracks(p) })
	}
	if !is || title == "" {
		return ""
	}
	page := canonicalPath("/wiki/" + strings.ReplaceAll(title, "%20", "_"))
	if !strings.HasPrefix(page, "/wiki/") {
		return ""
	}
	return "https://" + a.host + page
}

// video returns the address of a video of YouTube.
func (a *address) video() string {
	id := a.get("v")
	first, second, _ := strings.Cut(strings.TrimPrefix(a.path, "/"), "/")
	switch {
	case a.host == "youtu.be":
		id = first
	case first == "shorts" || first == "embed" || first == "live" || first == "v":
		id = second
	case first != "watch":
		return ""
	}
	if !videoID.MatchString(id) {
		return ""
	}
	return "https://youtube.com/watch?v=" + id
}
