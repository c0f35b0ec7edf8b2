// Creates identifiers on the client in the format of the service: TypeID 0.3, a prefix and a UUIDv7.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";

/** Returns a new identifier, for example `conv_01h2xcejqtf2nbrexx3vqjhp41`. */
export function newIdentifier<P extends string>(prefix: P, now = Date.now()): `${P}_${string}` {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  for (let i = 0; i < 6; i++) bytes[i] = Math.floor(now / 2 ** (8 * (5 - i))) % 256;
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  let number = bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  let text = "";
  for (let i = 0; i < 26; i++) {
    text = alphabet[Number(number & 31n)]! + text;
    number >>= 5n;
  }
  return `${prefix}_${text}`;
}
