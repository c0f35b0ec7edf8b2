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
