// Preferences that the service needs for the document itself, before the app runs.

/** Stores a preference in a cookie, from which the server renders the document, so that its first frame is right. */
export function storePreference(name: "language" | "theme" | "sidebar", value: string): void {
  document.cookie = `${name}=${value}; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
}
