// An address where there is nothing for this account.
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useSpeech } from "../words/speech";
import { RoomTitle } from "./title";

export function NotFound() {
  const { say } = useSpeech();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <div className="m-auto w-full max-w-lg px-6 py-10">
      <RoomTitle name={say("rooms.not_found.title")} />
      <h1 ref={heading} tabIndex={-1} className="text-xl font-semibold outline-none">{say("rooms.not_found.title")}</h1>
      <p className="mt-2 text-soft">{say("rooms.not_found.why")}</p>
      <Link to="/" className="mt-6 inline-flex min-h-9 items-center rounded-md bg-tide px-3 text-sm font-medium text-tide-ink hover:brightness-110 pointer-coarse:min-h-11">
        {say("rooms.not_found.start")}
      </Link>
    </div>
  );
}
