// Tables as comma-separated values (RFC 4180).

/** Returns the rows of a table as CSV. A cell with a comma, a quote, a line break or outer whitespace is quoted. */
export function csvOf(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => row.map(cell).join(",")).join("\r\n");
}

function cell(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
