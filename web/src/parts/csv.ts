// Tables as comma-separated values: RFC 4180.

/** The rows of a table as one text. Cells that hold a comma, a quote, a line break or outer spaces are quoted. */
export function csvOf(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.map(cell).join(",")).join("\r\n");
}

function cell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
