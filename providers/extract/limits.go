package extract

import (
	"time"

	"turnstone/protocol/timelimit"
)

// The limits of a text. Whatever is beyond them is left out, and the text is marked as truncated.
const (
	// maxText is the text of about 1,500 printed pages, more than the context of any model.
	maxText = 4 << 20
	// maxBlocks limits the pages, sheets, slides and chapters, which are stored with the text.
	maxBlocks = 5000
	// maxMarkup limits an HTML document, which is parsed as a tree in memory, of about 10 times its size.
	maxMarkup = 16 << 20
)

// The limits of an archive, against small files that unpack to large ones. A content beyond them is not read.
const (
	maxEntries  = 10_000    // a book of thousands of pictures has fewer
	maxUnpacked = 200 << 20 // twice the default limit of an upload
	maxRatio    = 100       // XML compresses to a tenth or a twentieth
	// smallEntry is the size up to which the ratio of a single entry does not matter: empty sheets compress well.
	smallEntry = 1 << 20
	// maxDepth limits the nesting of XML; documents with nested tables have less than 100 levels.
	maxDepth = 256
)

// The limits of a picture and its renditions. A larger picture has no thumbnail.
const (
	// maxPixels is a photo of most cameras. Decoded, it has at most 8 bytes for each pixel.
	maxPixels = 40_000_000
	// maxSide limits the memory for a picture that is one pixel wide. Of the formats, only PNG allows more.
	maxSide = 1<<16 - 1
	// thumbnailSide is twice the size at which the app shows thumbnails, for dense screens.
	thumbnailSide = 512
	// maxThumbnail is three times the size of the thumbnail of a detailed photo; see table file_texts.
	maxThumbnail = 128 << 10
	// pictureSide is the size to which the vendors of models reduce pictures.
	pictureSide = 1568
	// maxPicture is a detailed photo of this size; see table file_texts.
	maxPicture       = 512 << 10
	renditionQuality = 80
	// maxShown limits the pages of a document of pictures that models get: a request has no more pictures.
	maxShown = 8
	// maxDrawn is more than a page of noise has at twice the size of a thumbnail.
	maxDrawn = 8 << 20
	// maxDecoded is a photo of 12 megapixels without compression.
	maxDecoded = 64 << 20
	// maxExif is where the search for the orientation ends: cameras store it in the first segments of 64 KiB.
	maxExif = 256 << 10
)

// drawingTime limits the drawing of pages behind the first one.
var drawingTime = timelimit.Of(20 * time.Second)

// The limits of a child process.
const (
	maxCPU        = 30               // seconds
	maxConversion = 60               // seconds, of LibreOffice, which takes some to start
	maxTime       = 45 * time.Second // includes waiting for a processor; the job that waits for the child has 2 minutes
	maxInspection = 10 * time.Second // of an inspection, for which the uploads of all accounts wait
	maxMemory     = 768 << 20        // resident
	maxHeap       = 384 << 20        // from here on, the garbage collector of the child works harder
	maxReaderSize = 1 << 30          // address space of pdftotext
	// maxOutput is maxText with the longest escapes of JSON, and the blocks. A picture has less.
	maxOutput = 6*maxText + maxBlocks*1024
	// atOnce limits the children of a node, because of their memory.
	atOnce = 2
)
