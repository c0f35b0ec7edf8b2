// Decides which URLs in an answer become links.

/** Returns the URL if it may become a link: an absolute http, https or mailto URL. Otherwise undefined. */
export function linkURL(address: string | undefined): string | undefined {
  if (address === undefined || !/^(?:https?:\/\/|mailto:)/i.test(address)) return undefined;
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(address).protocol) ? address : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the URL of a source if it may become a link: an http or https URL with a host and without credentials. */
export function webURL(address: string | undefined): string | undefined {
  const url = linkURL(address);
  if (url === undefined) return undefined;
  const { protocol, host, username, password } = new URL(url);
  return protocol !== "mailto:" && host !== "" && username === "" && password === "" ? url : undefined;
}
