// The way back: the pages above this one.
import { Link, type LinkProps } from "@tanstack/react-router";

export function Crumbs({ above }: { above: { name: string; link: LinkProps }[] }) {
  return (
    <nav className="crumbs" aria-label="Where this is">
      {above.map(({ name, link }) => (
        <Link key={name} {...link}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
