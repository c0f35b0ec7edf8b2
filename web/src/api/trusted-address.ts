// Addresses of workers as trusted types.

interface Policy {
  createScriptURL(address: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: Policy): Policy;
}

let policy: Policy | undefined;

/**
 * Returns the address of a script, as a trusted type if the browser has these. The policy, which can be created only once, rejects
 * every script that is not an asset of this app.
 */
export function trustedAddress(address: string): string {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  policy ??= types?.createPolicy("turnstone", {
    createScriptURL(wanted) {
      const { origin, pathname } = new URL(wanted, location.href);
      if (origin !== location.origin || !/^\/assets\/[\w.-]+\.js$/.test(pathname))
        throw new TypeError("not a script of this app");
      return wanted;
    },
  });
  return policy?.createScriptURL(address) ?? address;
}
