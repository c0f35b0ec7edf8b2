// The picture of a file in a list: its thumbnail, or the icon of its kind. It has one size, so nothing moves when the
// thumbnail has loaded. The name of the file is next to it, so it has no other text.
import { useState } from "react";
import { thumbnailPath, type FileKind, type StoredFile } from "../api/files";
import { Icon, type IconName } from "./icon";

const icons: Record<FileKind, IconName> = {
  document: "file",
  text: "fileText",
  image: "image",
  audio: "music",
  archive: "archive",
  other: "file",
};

/** file: undefined while it is loading, or if it does not exist. */
export function FilePicture({ file, size }: { file: StoredFile | null | undefined; size: number }) {
  const [broken, setBroken] = useState(false);
  return (
    <span className="flex shrink-0 items-center justify-center text-soft" style={{ width: size, height: size }}>
      {file?.has_thumbnail === true && !broken ? (
        <img
          src={thumbnailPath(file)}
          alt=""
          width={size}
          height={size}
          loading="lazy"
          decoding="async"
          draggable={false}
          className="size-full rounded-sm object-cover"
          onError={() => setBroken(true)}
        />
      ) : (
        <Icon name={icons[file?.kind ?? "other"]} />
      )}
    </span>
  );
}
