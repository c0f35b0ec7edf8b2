// Tables as comma-separated values (RFC 4180).

/** Returns the rows of a table as CSV. A cell with a comma, a quote, a line break or outer whitespace is quoted. */
export function csvOf(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.map(cell).join(",")).join("\r\n");
}

function cell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Parses CSV into rows of cells, at most the given number of them. */
export function rowsOf(csv: string, most = Infinity): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  const endRow = () => {
    rows.push([...row, cell]);
    row = [];
    cell = "";
  };
  for (let i = 0; i < csv.length && rows.length < most; i++) {
    const c = csv[i]!;
    if (quoted && c === '"' && csv[i + 1] === '"') cell += csv[i++];
    else if (c === '"') quoted = !quoted;
    else if (quoted) cell += c;
    else if (c === ",") {
      row.push(cell);
      cell = "";
    } else if (c === "\n") endRow();
    else if (c !== "\r") cell += c;
  }
  if (rows.length < most && (cell !== "" || row.length > 0)) endRow();
  return rows;
}
