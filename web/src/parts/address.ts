// Which addresses of an answer may be followed.

/** The address when it may be followed: http, https or mailto, whole; otherwise undefined. */
export function followable(address: string | undefined): string | undefined {
  if (address === undefined || !/^(?:https?:\/\/|mailto:)/i.test(address)) return undefined;
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(address).protocol) ? address : undefined;
  } catch {
    return undefined;
  }
}
