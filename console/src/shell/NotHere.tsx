// A page that is not this person's to see, or not of this place: said before anything is asked of the server.
import type { Place } from "../place";
import { Empty } from "../ui/Feedback";
import type { PageEntry } from "./pages";

export function NotHere({ page, place }: { page: PageEntry; place: Place }) {
  const elsewhere = page.where !== "both" && (page.where === "platform") !== place.isPlatform;
  return (
    <>
      <div className="head">
        <h1>{page.name}</h1>
      </div>
      {elsewhere ? (
        <Empty title={page.where === "platform" ? "This page is of the whole platform" : "This page is of one project"}>
          Choose {page.where === "platform" ? "all projects" : "a project"} above.
        </Empty>
      ) : (
        <Empty title="This is not yours to see">
          It takes the permission <code>{page.needs}</code>. Ask somebody who manages members of {place.name} for it.
        </Empty>
      )}
    </>
  );
}
