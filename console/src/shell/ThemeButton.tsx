// Light or dark: as the system has it, until somebody chooses.
import { useEffect, useState } from "react";

const KEPT = "gpuaas-theme";

function initial(): "light" | "dark" {
  const kept = localStorage.getItem(KEPT);
  if (kept === "light" || kept === "dark") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function ThemeButton() {
  const [theme, setTheme] = useState(initial);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  const other = theme === "dark" ? "light" : "dark";
  const turn = () => {
    localStorage.setItem(KEPT, other);
    setTheme(other);
  };
  return (
    <button type="button" className="plain theme" onClick={turn} aria-label={`Use the ${other} theme`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13zm0 1.6v9.8a4.9 4.9 0 0 1 0-9.8z" fillRule="evenodd" />
      </svg>
    </button>
  );
}
