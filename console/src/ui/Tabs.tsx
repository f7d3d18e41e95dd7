// Views of one page, each with an address of its own.
import { Link, type LinkProps } from "@tanstack/react-router";

interface Tab {
  name: string;
  search: LinkProps["search"];
}

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  return (
    <nav className="tabs" aria-label={label}>
      {tabs.map(({ name, search }) => (
        // The router marks the tab whose whole address is the present one.
        <Link key={name} to="." search={search} activeOptions={{ exact: true, includeSearch: true }}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
