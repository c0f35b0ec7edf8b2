// Decodes character references in Markdown, such as &nbsp; and &#x2014;. The names are those of HTML 4. The whole table
// of HTML 5 has 2,231 names, which answers hardly use; an unknown name stays as it is written.

/** Names of consecutive characters from a code point on; "-": a character without a name. */
const ranges: readonly [from: number, names: string][] = [
  [
    160,
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute " +
      "micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring " +
      "AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml " +
      "times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil " +
      "egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash " +
      "ugrave uacute ucirc uuml yacute thorn yuml",
  ],
  [
    913,
    "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon " +
      "Phi Chi Psi Omega",
  ],
  [
    945,
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigmaf sigma tau " +
      "upsilon phi chi psi omega",
  ],
];

/** The other names, each with the code point of its character in base 36. */
const others =
  "quot y amp 12 apos 13 lt 1o gt 1q OElig 9e oelig 9f Scaron 9s scaron 9t Yuml ag fnof b6 circ jq tilde kc " +
  "thetasym r5 upsih r6 piv ra ensp 6bm emsp 6bn thinsp 6bt zwnj 6bw zwj 6bx lrm 6by rlm 6bz ndash 6c3 mdash " +
  "6c4 lsquo 6c8 rsquo 6c9 sbquo 6ca ldquo 6cc rdquo 6cd bdquo 6ce dagger 6cg Dagger 6ch bull 6ci hellip 6cm " +
  "permil 6cw prime 6cy Prime 6cz lsaquo 6d5 rsaquo 6d6 oline 6da frasl 6dg euro 6gc image 6j5 weierp 6jc real " +
  "6jg trade 6jm alefsym 6k5 larr 6mo uarr 6mp rarr 6mq darr 6mr harr 6ms crarr 6np lArr 6og uArr 6oh rArr 6oi " +
  "dArr 6oj hArr 6ok forall 6ps part 6pu exist 6pv empty 6px nabla 6pz isin 6q0 notin 6q1 ni 6q3 prod 6q7 sum " +
  "6q9 minus 6qa lowast 6qf radic 6qi prop 6ql infin 6qm ang 6qo and 6qv or 6qw cap 6qx cup 6qy int 6qz there4 " +
  "6r8 sim 6rg cong 6rp asymp 6rs ne 6sg equiv 6sh le 6sk ge 6sl sub 6te sup 6tf nsub 6tg sube 6ti supe 6tj " +
  "oplus 6tx otimes 6tz perp 6ud sdot 6v9 lceil 6x4 rceil 6x5 lfloor 6x6 rfloor 6x7 lang 6y1 rang 6y2 loz 7gq " +
  "spades 7kw clubs 7kz hearts 7l1 diams 7l2";

let table: Map<string, string> | null = null;

function loadTable(): Map<string, string> {
  table = new Map();
  for (const [from, names] of ranges)
    names.split(" ").forEach((name, at) => table!.set(name, String.fromCodePoint(from + at)));
  const words = others.split(" ");
  for (let at = 0; at < words.length; at += 2)
    table.set(words[at]!, String.fromCodePoint(parseInt(words[at + 1]!, 36)));
  return table;
}

/** Decodes the character references of a text. */
export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]*));/g,
    (written, decimal, hex, name) => {
      if (name !== undefined) return (table ?? loadTable()).get(name as string) ?? written;
      return characterOf(decimal === undefined ? parseInt(hex as string, 16) : Number(decimal));
    },
  );
}

/** Returns the character of a code point; the replacement character for one that a document must not contain. */
function characterOf(code: number): string {
  const forbidden = code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
  return forbidden ? "\uFFFD" : String.fromCodePoint(code);
}
