// The sources of an answer or of a tool's result, each with a link to its page or its file.
import { viewFile } from "../controls/viewed-file";
import type { Citation, Source } from "../generated/events";
import { useLocalization } from "../messages/localization";
import { webURL } from "./links";

/** How many pages of one file are listed. */
const maxPages = 5;

/** Returns what a tool has read as sources: the web pages, and the files, one for each of their pages. */
export function sourcesOf(read: readonly Source[]): Citation[] {
  return read.flatMap(({ number, file_id, url, title, size, blocks = [] }): Citation[] => {
    const marker = `[${number}]`;
    if (url !== undefined) return [{ index: 0, title: title === "" ? url : title, url, marker }];
    const file = { index: 0, title, file_id, marker };
    if (blocks.length === 0) return [{ ...file, offset: 0, length: size }];
    return blocks.slice(0, maxPages).map(({ kind, page, offset, length }) => ({ ...file, kind, page, offset, length }));
  });
}

/** Returns the host of a web page, by which the reader can judge it. */
export const hostOf = (address: string): string => new URL(address).host.replace(/^www\./, "");

export function Sources({ list }: { list: readonly Citation[] }) {
  const { t } = useLocalization();
  if (list.length === 0) return null;
  return (
    <div className="mt-3 text-sm">
      <p className="text-xs text-faint">{t("transcript.sources")}</p>
      <ol className="mt-1 flex flex-wrap gap-x-4 gap-y-1">
        {list.map(({ index, title, url, marker, file_id, kind, page, offset = 0, length = 0 }, at) => {
          const address = webURL(url);
          const place = kind === undefined || page === undefined ? "" : t(`file.${kind}`, { number: page });
          return (
            <li key={at} className="max-w-full truncate">
              <span className="text-faint tabular-nums">{index > 0 ? index : (marker ?? at + 1)} </span>
              {file_id !== undefined ? (
                <button
                  type="button"
                  data-source=""
                  className="text-accent underline decoration-1 underline-offset-2"
                  onClick={() =>
                    viewFile({ id: file_id, name: title, ...(place === "" ? {} : { cited: { offset, length } }) })
                  }
                >
                  <bdi>{title}</bdi>
                  {place !== "" && `, ${place}`}
                </button>
              ) : address === undefined ? (
                <bdi>{title}</bdi>
              ) : (
                <a
                  href={address}
                  title={address}
                  target="_blank"
                  rel="noopener noreferrer nofollow"
                  className="text-accent underline decoration-1 underline-offset-2"
                >
                  <bdi>{title}</bdi>
                </a>
              )}
              {address !== undefined && (
                <span className="text-faint">
                  {" "}
                  <bdi>{hostOf(address)}</bdi>
                </span>
              )}
            </li>
          );
        })}
      </ol>
    </div>
  );
}
