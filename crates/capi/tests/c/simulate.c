/* Prints the result of a simulation: simulate SCENARIO CONTROLLER SEED */
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

int main(int argc, char **argv) {
    if (argc != 4 || !weir_has_lab())
        return 2;
    uint64_t seed = strtoull(argv[3], NULL, 10);
    weir_handle result;
    size_t length = 0;
    if (weir_run_json(argv[1], argv[2], &seed, &result) != WEIR_STATUS_OK) {
        fprintf(stderr, "%s\n", weir_last_error());
        return 1;
    }
    if (weir_text_copy(result, NULL, 0, &length) != WEIR_STATUS_BUFFER_TOO_SMALL)
        return 3;
    char *text = malloc(length);
    if (weir_text_copy(result, text, length, &length) != WEIR_STATUS_OK || weir_free(result) != WEIR_STATUS_OK)
        return 4;
    fwrite(text, 1, length, stdout);
    free(text);
    return 0;
}
