package filetype

import (
	"path"
	"strings"
)

// The names of media types and the extensions of names are in tables of our own: those of the host computer differ.

// aliases maps names that clients and libraries use to those of Types.
var aliases = map[string]string{
	"application/x-pdf": "application/pdf", "text/pdf": "application/pdf",
	"application/xhtml+xml":   "text/html",
	"application/vnd.ms-word": "application/msword", "application/x-msword": "application/msword", "application/doc": "application/msword",
	"application/excel": "application/vnd.ms-excel", "application/msexcel": "application/vnd.ms-excel", "application/x-msexcel": "application/vnd.ms-excel",
	"application/xls": "application/vnd.ms-excel", "application/x-excel": "application/vnd.ms-excel",
	"application/powerpoint": "application/vnd.ms-powerpoint", "application/mspowerpoint": "application/vnd.ms-powerpoint", "application/x-mspowerpoint": "application/vnd.ms-powerpoint",
	// Documents with macros, which are never run, and templates are read like the documents that they make.
	"application/vnd.ms-word.document.macroenabled.12":                        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.ms-word.template.macroenabled.12":                        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.template": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"application/vnd.ms-excel.sheet.macroenabled.12":                          "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"application/vnd.ms-excel.template.macroenabled.12":                       "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.template":    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"application/vnd.ms-powerpoint.presentation.macroenabled.12":              "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.ms-powerpoint.slideshow.macroenabled.12":                 "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.ms-powerpoint.template.macroenabled.12":                  "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.openxmlformats-officedocument.presentationml.slideshow":  "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.openxmlformats-officedocument.presentationml.template":   "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"application/vnd.oasis.opendocument.text-template":                        "application/vnd.oasis.opendocument.text",
	"application/vnd.oasis.opendocument.spreadsheet-template":                 "application/vnd.oasis.opendocument.spreadsheet",
	"application/vnd.oasis.opendocument.presentation-template":                "application/vnd.oasis.opendocument.presentation",
	"text/rtf": "application/rtf", "application/x-rtf": "application/rtf", "text/richtext": "application/rtf",
	"application/msoutlook": "application/vnd.ms-outlook", "application/x-msg": "application/vnd.ms-outlook",
	"application/eml": "message/rfc822", "message/x-emlx": "message/rfc822", "message/global": "message/rfc822",
	"application/x-mimearchive": "multipart/related", "message/mhtml": "multipart/related",
	"application/vnd.jupyter": "application/x-ipynb+json", "application/x-ipynb": "application/x-ipynb+json",
	"text/json": "application/json", "application/x-json": "application/json", "text/x-json": "application/json",
	"application/jsonl": "application/x-ndjson", "application/jsonlines": "application/x-ndjson", "application/x-jsonlines": "application/x-ndjson", "application/ndjson": "application/x-ndjson",
	"text/xml": "application/xml", "application/x-xml": "application/xml",
	"text/yaml": "application/yaml", "text/x-yaml": "application/yaml", "application/x-yaml": "application/yaml", "application/vnd.yaml": "application/yaml",
	"text/toml": "application/toml", "text/x-toml": "application/toml",
	"text/javascript": "application/javascript", "application/x-javascript": "application/javascript", "application/ecmascript": "application/javascript",
	"application/typescript": "text/x-typescript", "application/x-typescript": "text/x-typescript", "text/typescript": "text/x-typescript",
	"video/mp2t": "text/x-typescript", "video/vnd.dlna.mpeg-tts": "text/x-typescript",
	"application/x-shellscript": "application/x-sh", "text/x-sh": "application/x-sh", "text/x-shellscript": "application/x-sh",
	"text/x-sql": "application/sql", "application/x-sql": "application/sql",
	"application/csv": "text/csv", "text/x-csv": "text/csv", "application/x-csv": "text/csv", "text/comma-separated-values": "text/csv",
	"text/tsv": "text/tab-separated-values", "text/x-markdown": "text/markdown", "application/markdown": "text/markdown",
	"application/x-httpd-php": "text/x-php", "application/x-php": "text/x-php", "application/x-python-code": "text/x-python", "application/x-python": "text/x-python",
	"application/x-tex": "text/x-tex", "application/x-latex": "text/x-tex", "application/x-subrip": "text/plain", "application/x-perl": "text/x-perl", "application/x-ruby": "text/x-ruby",
	"application/postscript": "text/plain", "image/vnd.dxf": "text/plain", "image/x-dxf": "text/plain", "application/dxf": "text/plain", "application/x-dxf": "text/plain",
	"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "image/apng": "image/png", "image/vnd.mozilla.apng": "image/png",
	"image/x-ms-bmp": "image/bmp", "image/x-bmp": "image/bmp", "image/x-windows-bmp": "image/bmp", "image/tif": "image/tiff", "image/x-tiff": "image/tiff", "image/avif-sequence": "image/avif",
	"image/heif": "image/heic", "image/heic-sequence": "image/heic", "image/heif-sequence": "image/heic",
	"audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav", "audio/x-flac": "audio/flac",
	"audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4", "audio/x-mpeg": "audio/mpeg", "audio/mp3": "audio/mpeg", "application/ogg": "audio/ogg",
	"application/x-gzip": "application/gzip", "application/x-zip-compressed": "application/zip", "application/x-zip": "application/zip",
	"binary/octet-stream": OctetStream, "application/unknown": OctetStream, "application/x-unknown": OctetStream, "application/force-download": OctetStream, "application/download": OctetStream,
}

// Canonical returns the name that the service uses for a media type, without parameters and in lower case.
func Canonical(name string) string {
	if alias, is := aliases[name]; is {
		return alias
	}
	return name
}

// extensions maps extensions of names to types. Contents that are not text must be of the type; see package providers/media.
var extensions = map[string]string{
	".pdf":  "application/pdf",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".odt":  "application/vnd.oasis.opendocument.text",
	".docm": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".dotx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".dotm": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsm": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xltx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xltm": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptm": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".ppsx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".ppsm": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".potx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".potm": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".ott":  "application/vnd.oasis.opendocument.text", ".ots": "application/vnd.oasis.opendocument.spreadsheet", ".otp": "application/vnd.oasis.opendocument.presentation",
	".doc":  "application/msword",
	".xls":  "application/vnd.ms-excel",
	".ppt":  "application/vnd.ms-powerpoint",
	".ods":  "application/vnd.oasis.opendocument.spreadsheet",
	".odp":  "application/vnd.oasis.opendocument.presentation",
	".epub": "application/epub+zip",
	".png":  "image/png", ".apng": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".jpe": "image/jpeg", ".jfif": "image/jpeg", ".webp": "image/webp",
	".gif": "image/gif", ".heic": "image/heic", ".heif": "image/heic", ".hif": "image/heic", ".avif": "image/avif", ".bmp": "image/bmp", ".dib": "image/bmp",
	".tif": "image/tiff", ".tiff": "image/tiff",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".flac": "audio/flac", ".m4a": "audio/mp4",
	".zip": "application/zip", ".gz": "application/gzip", ".tar": "application/x-tar",

	".rtf": "application/rtf", ".eml": "message/rfc822", ".msg": "application/vnd.ms-outlook", ".mht": "multipart/related", ".mhtml": "multipart/related", ".ipynb": "application/x-ipynb+json",
	".html": "text/html", ".htm": "text/html", ".xhtml": "text/html",
	".txt": "text/plain", ".text": "text/plain", ".log": "text/plain", ".env": "text/plain", ".ini": "text/plain", ".cfg": "text/plain", ".conf": "text/plain",
	".properties": "text/plain", ".dxf": "text/plain", ".srt": "text/plain", ".ps": "text/plain", ".eps": "text/plain",
	".md": "text/markdown", ".markdown": "text/markdown", ".rst": "text/x-rst", ".adoc": "text/asciidoc", ".tex": "text/x-tex", ".bib": "text/x-bibtex",
	".csv": "text/csv", ".tsv": "text/tab-separated-values", ".tab": "text/tab-separated-values",
	".json": "application/json", ".geojson": "application/json", ".webmanifest": "application/json", ".jsonl": "application/x-ndjson", ".ndjson": "application/x-ndjson",
	".xml": "application/xml", ".xsd": "application/xml", ".xsl": "application/xml", ".plist": "application/xml", ".rss": "application/xml", ".svg": "image/svg+xml",
	".yaml": "application/yaml", ".yml": "application/yaml", ".toml": "application/toml",
	".css": "text/css", ".js": "application/javascript", ".mjs": "application/javascript", ".cjs": "application/javascript", ".jsx": "application/javascript",
	".ts": "text/x-typescript", ".mts": "text/x-typescript", ".cts": "text/x-typescript", ".tsx": "text/x-typescript",
	".py": "text/x-python", ".go": "text/x-go", ".rs": "text/x-rust", ".java": "text/x-java", ".kt": "text/x-kotlin", ".swift": "text/x-swift",
	".c": "text/x-c", ".h": "text/x-c", ".cc": "text/x-c++", ".cpp": "text/x-c++", ".hpp": "text/x-c++", ".cs": "text/x-csharp", ".rb": "text/x-ruby", ".php": "text/x-php",
	".pl": "text/x-perl", ".r": "text/x-r", ".lua": "text/x-lua", ".scala": "text/x-scala", ".sh": "application/x-sh", ".bash": "application/x-sh", ".sql": "application/sql",
	".diff": "text/x-diff", ".patch": "text/x-diff", ".ics": "text/calendar", ".vcf": "text/vcard", ".vtt": "text/vtt",
}

// ByName returns the media type that a name says; empty if it says none.
func ByName(filename string) string { return extensions[strings.ToLower(path.Ext(filename))] }
