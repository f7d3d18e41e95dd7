// The buttons of lists in a form, in words: the forms' own are icons of a font that is not loaded.
import type { IconButtonProps } from "@rjsf/utils";

const named =
  (name: string) =>
  ({ id, onClick, disabled }: IconButtonProps) => (
    <button type="button" id={id} onClick={onClick} disabled={disabled}>
      {name}
    </button>
  );

export const BUTTONS = {
  AddButton: named("Add"),
  CopyButton: named("Copy"),
  MoveDownButton: named("Move down"),
  MoveUpButton: named("Move up"),
  RemoveButton: named("Remove"),
};
