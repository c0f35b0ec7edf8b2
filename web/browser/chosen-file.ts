// Files as a user chooses them.
import { crc32, deflateSync } from "node:zlib";

export interface ChosenFile {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

export const textFile = (name: string, content = `The tides of ${name}.\n`, mimeType = "text/plain"): ChosenFile => ({
  name,
  mimeType,
  buffer: Buffer.from(content),
});

/** A gray PNG picture. */
export function pictureFile(name: string, width: number, height: number): ChosenFile {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const frame = Buffer.alloc(8 + body.length);
    frame.writeUInt32BE(data.length);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body), 4 + body.length);
    return frame;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8; // bits of each pixel
  const rows = Buffer.alloc((width + 1) * height, 120);
  for (let row = 0; row < height; row++) rows[row * (width + 1)] = 0; // not filtered
  return {
    name,
    mimeType: "image/png",
    buffer: Buffer.concat([
      Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
      chunk("IHDR", header),
      chunk("IDAT", deflateSync(rows)),
      chunk("IEND", Buffer.alloc(0)),
    ]),
  };
}
