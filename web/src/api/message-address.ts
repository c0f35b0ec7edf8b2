// The fragments of URLs that address messages.

/** Returns the fragment that addresses a message, and the branch that shows it. */
export const addressOf = (message: string, branch: string | null): string =>
  branch === null ? message : `${message}@${branch}`;
