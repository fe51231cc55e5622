#define A(x) x x x x x x x x x x
#define B(x) A(A(A(A(x))))
int main(void) { B(B(undeclared_with_quite_a_long_name_that_is_repeated++ ;)) }
