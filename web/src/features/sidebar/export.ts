// The export of one conversation, which the browser downloads or prints.

/** Starts the download of a conversation with all of its branches. The service names the file. */
export function exportConversation(id: string, format: "markdown" | "json"): void {
  const link = document.createElement("a");
  link.href = `/conversations/${id}/export?format=${format}`;
  link.download = "";
  link.click();
}

/** Prints the shown conversation, or saves it as PDF, once the menu has closed. */
export function printConversation(): void {
  setTimeout(() => window.print());
}
