// Files as a user chooses them.
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
