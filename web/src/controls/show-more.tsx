// The button below a list that reads its next page.
import { Button } from "./button";

interface ShowMoreProps {
  label: string;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => Promise<unknown>;
}

/** Shows nothing if the list has no next page. */
export function ShowMore({ label, hasNextPage, isFetchingNextPage, fetchNextPage }: ShowMoreProps) {
  if (!hasNextPage) return null;
  return (
    <Button
      className="my-3 w-fit aria-disabled:text-faint"
      aria-disabled={isFetchingNextPage}
      onClick={() => !isFetchingNextPage && void fetchNextPage()}
    >
      {label}
    </Button>
  );
}
